#include "engine/internal/drafted_answer.h"

#include <algorithm>
#include <utility>

#include "base/coroutine.h"

namespace molly::engine {

Task<Result<std::vector<Token>>> DraftedAnswer::propose(std::vector<Token> came,
                                                        std::uint32_t most) {
    const auto promise = std::make_shared<Promise<Result<std::vector<Token>>>>();
    {
        const std::scoped_lock lock(mutex_);
        if (ended_) co_return fail(*ended_);
        if (asked_) co_return fail(ErrorCode::conflict, "a proposal is being made");
        text_.insert(text_.end(), came.begin(), came.end());
        most_ = most;
        drafted_.clear();
        asked_ = promise;
        asked_new_ = true;
    }
    nudge_();
    co_return co_await promise->wait();
}

void DraftedAnswer::begin(std::vector<Token> prompt, std::uint32_t tokens_max) {
    const std::scoped_lock lock(mutex_);
    text_.insert(text_.begin(), prompt.begin(), prompt.end());
    tokens_max_ = tokens_max;
    begun_ = true;
}

void DraftedAnswer::deliver(Result<std::vector<Token>> tokens) {
    if (asked_) std::exchange(asked_, nullptr)->set(std::move(tokens));
}

void DraftedAnswer::end(Error why) {
    const std::scoped_lock lock(mutex_);
    if (ended_) return;
    ended_ = std::move(why);
    deliver(fail(*ended_));
}

bool DraftedAnswer::wanted() const {
    const std::scoped_lock lock(mutex_);
    return asked_ != nullptr;
}

std::optional<std::vector<Token>> DraftedAnswer::new_text() {
    const std::scoped_lock lock(mutex_);
    if (!begun_ || !std::exchange(asked_new_, false)) return std::nullopt;
    const std::size_t room = tokens_max_ - std::min<std::size_t>(tokens_max_, text_.size());
    most_ = static_cast<std::uint32_t>(std::min<std::size_t>(most_, room));
    if (most_ > 0) return text_;
    deliver(fail(ErrorCode::exhausted, "there is no room for more of the answer"));
    return std::nullopt;
}

void DraftedAnswer::drew(Token token, bool ends) {
    const std::scoped_lock lock(mutex_);
    if (!asked_) return;
    if (!ends) drafted_.push_back(token);
    if (ends || drafted_.size() >= most_) deliver(std::move(drafted_));
}

}  // namespace molly::engine
