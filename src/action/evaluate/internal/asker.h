#pragma once
// Puts many questions to an engine, several at once, with the same greedy decoding.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "domain/request.h"
#include "engine/engine.h"

namespace molly::evaluate {

struct Question {
    std::vector<domain::Message> messages;
    const std::string* schema = nullptr;  ///< of the answer
    std::optional<engine::AdapterUse> adapter;
};

struct Reply {
    std::string text;
    bool too_long = false;  ///< the question did not fit the model's context
    std::uint32_t prompt_tokens = 0;
    std::uint32_t answer_tokens = 0;
};

/// Answers in the order of the questions. `progress` gets how many are answered. Errors: those of
/// Engine::generate, but for questions that are too long.
Result<std::vector<Reply>> ask_all(engine::Engine& engine, const std::vector<Question>& questions,
                                   const std::function<void(std::size_t)>& progress);

}  // namespace molly::evaluate
