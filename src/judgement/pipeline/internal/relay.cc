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

Task<Result<void>> Relay::begin() {
    if (begun_) co_return Result<void>();
    begun_ = true;
    Result<void> opened = co_await edge_.begin(served_);
    edge_gone_ = !opened;
    co_return opened;
}

Task<Result<void>> Relay::write(const domain::Delta& delta) {
    if (delta.usage) reported_ = delta.usage;
    builder_.add(delta);
    bytes_ += bytes_of(delta);
    if (!first_at_ && !silent(delta)) first_at_ = clock_.now();
    if (!stream_ || !first_at_) co_return Result<void>();
    CO_TRY_DO(co_await begin());
    Result<void> written = co_await edge_.write(delta);
    edge_gone_ = !written;
    co_return written;
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
