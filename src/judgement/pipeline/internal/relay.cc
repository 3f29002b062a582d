#include "pipeline/internal/relay.h"

#include "base/coroutine.h"

namespace molly::pipeline {
namespace {

constexpr std::uint64_t bytes_per_two_tokens = 7;  // as annotate estimates prompts

/// Whether a Delta says nothing: as long as only such came, another target may still answer.
bool silent(const domain::Delta& delta) noexcept {
    return delta.text.empty() && delta.reasoning.empty() && delta.tool_calls.empty() &&
           delta.logprobs.empty() && !delta.finish;
}

std::uint64_t bytes_of(const domain::Delta& delta) noexcept {
    std::uint64_t bytes = delta.text.size() + delta.reasoning.size();
    for (const domain::ToolCallDelta& call : delta.tool_calls)
        bytes += call.name.size() + call.arguments.size();
    return bytes;
}

}  // namespace

Task<Result<void>> Relay::open() {
    if (begun_) co_return Result<void>();
    begun_ = true;
    Result<void> opened = co_await edge_.begin(served_);
    edge_gone_ = !opened;
    co_return opened;
}

Task<Result<void>> Relay::begin() {
    if (manner_.release == Release::on_word) co_return Result<void>();
    co_return co_await open();
}

Task<Result<void>> Relay::pass(const domain::Delta& delta) {
    CO_TRY_DO(co_await open());
    Result<void> written = co_await edge_.write(delta);
    edge_gone_ = !written;
    co_return written;
}

Task<Result<void>> Relay::release() {
    manner_.release = Release::at_once;
    CO_TRY_DO(co_await open());
    for (const domain::Delta& delta : held_)
        CO_TRY_DO(co_await pass(delta));
    held_.clear();
    co_return Result<void>();
}

Task<Result<void>> Relay::write(const domain::Delta& delta) {
    if (manner_.measures)
        logprobs_.insert(logprobs_.end(), delta.logprobs.begin(), delta.logprobs.end());
    return manner_.hides_logprobs && !delta.logprobs.empty() ? take_bare(delta) : take(delta);
}

Task<Result<void>> Relay::take_bare(domain::Delta delta) {
    delta.logprobs.clear();
    co_return co_await take(delta);
}

Task<Result<void>> Relay::take(const domain::Delta& delta) {
    if (delta.usage) reported_ = delta.usage;
    builder_.add(delta);
    bytes_ += bytes_of(delta);
    if (!first_at_ && !silent(delta)) {
        if (manner_.may_speak && !manner_.may_speak())
            co_return fail(ErrorCode::cancelled, "another answer was quicker");
        first_at_ = clock_.now();
    }
    if (!manner_.stream || !first_at_) co_return Result<void>();
    if (manner_.release == Release::on_word) {
        held_.push_back(delta);
        co_return Result<void>();
    }
    co_return co_await pass(delta);
}

domain::Usage Relay::usage(std::uint32_t prompt_tokens) const noexcept {
    if (reported_ && reported_->source != domain::Usage::Source::none) return *reported_;
    domain::Usage usage;
    usage.prompt_tokens = prompt_tokens;
    usage.answer_tokens =
        static_cast<std::uint32_t>((2 * bytes_ + bytes_per_two_tokens - 1) / bytes_per_two_tokens);
    usage.source = domain::Usage::Source::estimate;
    return usage;
}

}  // namespace molly::pipeline
