#pragma once
// One question to the models, streamed, as `ask` and `chat` put it.
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "app/api.h"
#include "base/json.h"

namespace molly::app {

struct Turn {
    std::string role;
    std::string text;
};

struct Question {
    std::vector<Turn> turns;
    std::string model = "auto";
    std::string sensitivity;       ///< `class`, or empty
    std::string conversation;      ///< or empty
    std::string mode;              ///< or empty
    std::string keep_prefix;       ///< or empty
    std::uint32_t tokens_max = 0;  ///< 0: the target's default
};

struct Answer {
    std::string text;
    std::string target;
    std::string tier;
    std::string receipt;
    std::string alias;
    std::uint64_t prompt_tokens = 0;
    std::uint64_t answer_tokens = 0;
    std::chrono::milliseconds duration{0};
};

/// Puts the question; `show` gets the text as it comes. Errors: those of the gateway.
Result<Answer> put_question(Api& api, const Question& question,
                            const std::function<void(std::string_view)>& show);

/// "local (T0), 12 + 34 tokens, 0.8 s, receipt req_..."
std::string summary_of(const Terminal& terminal, const Answer& answer);

/// What was considered for a receipt, one line a candidate. Errors: those of the gateway.
Result<std::string> explanation_of(Api& api, const Terminal& terminal, const std::string& receipt);

}  // namespace molly::app
