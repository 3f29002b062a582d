#pragma once
// Stands between a target and the edge during one attempt. Lives on one coroutine.
#include <optional>
#include <utility>

#include "domain/response.h"
#include "pipeline/pipeline.h"

namespace molly::pipeline {

/// Keeps the whole answer. Of a stream it passes each Delta to the edge and opens it with the first
/// one; otherwise the edge hears of nothing until `begin`, so that another target may still answer.
class Relay final : public targets::DeltaSink {
public:
    Relay(AnswerSink& edge, Served served, Clock& clock, bool stream)
        : edge_(edge), served_(std::move(served)), clock_(clock), stream_(stream) {}

    Task<Result<void>> write(const domain::Delta& delta) override;
    /// Opens the edge if no Delta has. Errors: cancelled.
    Task<Result<void>> begin();

    /// Whether the edge has heard of this answer.
    bool begun() const noexcept { return begun_; }
    /// Whether it was the edge that broke off.
    bool edge_gone() const noexcept { return edge_gone_; }
    /// When the target said its first word.
    std::optional<MonoTime> first_at() const noexcept { return first_at_; }
    /// Tokens so far: as the target counts them, else estimated from the bytes.
    domain::Usage usage(std::uint32_t prompt_tokens) const noexcept;
    Served take_served() { return std::move(served_); }
    domain::Response take_response() { return builder_.take(); }

private:
    AnswerSink& edge_;
    Served served_;
    Clock& clock_;
    bool stream_;
    domain::ResponseBuilder builder_;
    std::optional<MonoTime> first_at_;
    std::optional<domain::Usage> reported_;
    std::uint64_t bytes_ = 0;
    bool begun_ = false;
    bool edge_gone_ = false;
};

}  // namespace molly::pipeline
