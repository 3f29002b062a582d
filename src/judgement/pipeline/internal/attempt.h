#pragma once
// One dispatch to one target, with its line in the trace. Lives on one coroutine; several may run
// beside each other on one executor.
#include <functional>
#include <memory>
#include <optional>

#include "domain/trace.h"
#include "pipeline/internal/prepared.h"
#include "pipeline/internal/relay.h"
#include "pipeline/pipeline.h"

namespace molly::pipeline {

class PlaceholderMaps;

/// What the attempts of one request have in common; it outlives them.
struct Venture {
    const Parts& parts;
    const Prepared& prepared;
    PlaceholderMaps& maps;
    AnswerSink& sink;
    domain::Trace& trace;
    MonoTime started;
};

class Attempt {
public:
    using Step = router::Plan::Step;
    struct Manner {
        domain::Cause cause = domain::Cause::step;
        Release release = Release::at_once;
        bool measures = false;  ///< log-probabilities are kept
        /// Another form of the request than the caller's; null: that.
        std::shared_ptr<const policy::ClearedRequest> cleared = {};
        std::function<bool()> may_speak = {};  ///< as Relay's
    };

    Attempt(Venture& venture, const Step& planned, Manner manner);
    Attempt(const Attempt&) = delete;
    Attempt& operator=(const Attempt&) = delete;
    Attempt(Attempt&&) = delete;
    Attempt& operator=(Attempt&&) = delete;
    ~Attempt();

    /// Asks the target. Once.
    Task<void> run();

    bool answered() const noexcept { return result_.has_value(); }
    /// Why it did not answer.
    const Error& error() const noexcept { return result_.error(); }
    /// Whatever it said, no other target may follow: the edge has gone, our own records cannot be
    /// written, or it might be paid for twice.
    bool last_word() const noexcept { return last_word_; }
    const Step& step() const noexcept { return step_; }
    Relay& relay() noexcept { return relay_; }
    const Relay& relay() const noexcept { return relay_; }
    domain::Attempt& line() const noexcept { return venture_.trace.attempts[line_]; }
    /// What the edge is told. Of one that answered, once.
    Outcome take_outcome();

private:
    Result<domain::Label> label_of() const;
    Task<Result<domain::Response>> dispatch();
    Task<Result<domain::Response>> dispatch_outside(policy::Dispatch leave,
                                                    targets::Target& target);
    Task<Result<void>> depart();
    domain::Attempt new_line(domain::Cause cause) const;
    void close();

    Venture& venture_;
    Step step_;  // with the version that its adapter's name means
    std::shared_ptr<const policy::ClearedRequest> cleared_;
    targets::Target* target_;
    Relay relay_;
    targets::Report report_;
    std::size_t line_ = 0;
    MonoTime started_;
    Result<domain::Response> result_ = fail(ErrorCode::internal, "not asked");
    bool unrecorded_ = false;  // our own records could not be written
    bool last_word_ = false;
};

}  // namespace molly::pipeline
