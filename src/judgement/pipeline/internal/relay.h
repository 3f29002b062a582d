#pragma once
// Stands between a target and the edge during one attempt. Lives on one coroutine.
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "domain/response.h"
#include "pipeline/pipeline.h"

namespace molly::pipeline {

/// When the edge hears of an answer.
enum class Release : std::uint8_t {
    at_once,  ///< of a stream each Delta as it comes, of a whole answer once the target has ended
    on_word,  ///< of one that may still be rejected after `release` alone
};

/// Keeps the whole answer. Of a stream it passes each Delta to the edge and opens it with the first
/// one; otherwise the edge hears of nothing until `begin`, so that another target may still answer.
/// Log-probabilities that only we asked for never reach the edge.
class Relay final : public targets::DeltaSink {
public:
    struct Manner {
        bool stream = false;  ///< the caller reads Deltas
        Release release = Release::at_once;
        bool measures = false;        ///< confidence in the answer is asked for
        bool hides_logprobs = false;  ///< the caller did not ask for them
        /// Asked once, at the first word, whether it may be said; empty: it may.
        std::function<bool()> may_speak = {};
    };
    Relay(AnswerSink& edge, Served served, Clock& clock, Manner manner)
        : edge_(edge), served_(std::move(served)), clock_(clock), manner_(manner) {}

    Task<Result<void>> write(const domain::Delta& delta) override;
    /// The target has ended: opens the edge if no Delta has and the answer may be heard. Errors:
    /// cancelled.
    Task<Result<void>> begin();
    /// The held answer is the one: passes on all of it. Errors: cancelled.
    Task<Result<void>> release();

    /// The tokens' log-probabilities so far.
    const std::vector<domain::TokenLogprob>& logprobs() const noexcept { return logprobs_; }
    /// Whether anything was said.
    bool empty() const noexcept { return builder_.empty(); }
    /// What was said so far.
    const std::string& text() const noexcept { return builder_.text(); }

    /// Whether the edge hears of it only once it is the one.
    bool withholds() const noexcept { return manner_.release == Release::on_word; }
    /// Whether the edge has heard of this answer.
    bool begun() const noexcept { return begun_; }
    /// Whether it was the edge that broke off.
    bool edge_gone() const noexcept { return edge_gone_; }
    /// When the target said its first word.
    std::optional<MonoTime> first_at() const noexcept { return first_at_; }
    /// Tokens so far: as the target counts them, else estimated from the bytes.
    domain::Usage usage(std::uint32_t prompt_tokens) const noexcept;
    const Served& served() const noexcept { return served_; }
    domain::Response take_response() { return builder_.take(); }

private:
    Task<Result<void>> open();
    Task<Result<void>> pass(const domain::Delta& delta);
    Task<Result<void>> take(const domain::Delta& delta);
    Task<Result<void>> take_bare(domain::Delta delta);

    AnswerSink& edge_;
    Served served_;
    Clock& clock_;
    Manner manner_;
    std::vector<domain::Delta> held_;
    std::vector<domain::TokenLogprob> logprobs_;
    domain::ResponseBuilder builder_;
    std::optional<MonoTime> first_at_;
    std::optional<domain::Usage> reported_;
    std::uint64_t bytes_ = 0;
    bool begun_ = false;
    bool edge_gone_ = false;
};

}  // namespace molly::pipeline
