#pragma once
// An answer that is made elsewhere and drafted here: what came of it, and what is asked next. Safe
// from any thread.
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/promise.h"
#include "base/result.h"
#include "engine/internal/model.h"

namespace molly::engine {

class DraftedAnswer {
public:
    /// `nudge` wakes the engine thread.
    explicit DraftedAnswer(std::function<void()> nudge) : nudge_(std::move(nudge)) {}

    /// As Drafting's.
    Task<Result<std::vector<Token>>> propose(std::vector<Token> came, std::uint32_t most);
    /// The prompt is known; prompt and answer together may have `tokens_max`.
    void begin(std::vector<Token> prompt, std::uint32_t tokens_max);
    /// Nothing more will be drafted, for this reason.
    void end(Error why);

    // For the engine thread.

    /// Whether a token is wanted now.
    bool wanted() const;
    /// The text to go on from, prompt and answer, where it is not what was drafted; once for each
    /// proposal.
    std::optional<std::vector<Token>> new_text();
    /// The likeliest next token. `ends`: it would end the answer.
    void drew(Token token, bool ends);

private:
    void deliver(Result<std::vector<Token>> tokens);

    const std::function<void()> nudge_;
    mutable std::mutex mutex_;
    std::vector<Token> text_;  // the prompt once it is known, and what came
    std::uint32_t tokens_max_ = 0;
    bool begun_ = false;
    bool asked_new_ = false;
    std::uint32_t most_ = 0;
    std::vector<Token> drafted_;
    std::optional<Error> ended_;
    std::shared_ptr<Promise<Result<std::vector<Token>>>> asked_;
};

}  // namespace molly::engine
