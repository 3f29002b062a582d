#pragma once
// Tries the steps of one plan in order. Lives on one coroutine.
#include <memory>
#include <optional>

#include "domain/trace.h"
#include "pipeline/pipeline.h"

namespace molly::pipeline {

class PlaceholderMaps;
class Relay;

/// A request that may be attempted: cleared, planned, with room reserved in its key's limits.
struct Prepared {
    std::shared_ptr<const policy::ClearedRequest> cleared;
    router::Plan plan;
    bool aliased = false;
    std::unique_ptr<members::Reservation> reservation;
};

/// What the edge was told, and the answer that went with it.
struct Outcome {
    Served served;
    domain::Response response;
};

class Attempts {
public:
    /// All of it outlives the attempts; each attempt leaves its line in `trace`.
    Attempts(const Parts& parts, const Prepared& prepared, PlaceholderMaps& maps, AnswerSink& sink,
             domain::Trace& trace);

    /// The first answer. Another step is tried only before the first Delta reached the edge, never
    /// after a refusal, and never where an attempt might be paid for twice.
    /// Errors: those of the last attempt, with all attempts named.
    Task<Result<Outcome>> run();

    /// Whether the edge has begun to answer.
    bool begun() const noexcept { return begun_; }

private:
    router::Plan::Step exact(const router::Plan::Step& planned) const;
    Task<Result<Outcome>> attempt(const router::Plan::Step& planned);
    Task<Result<domain::Response>> dispatch(const router::Plan::Step& step, Relay& relay,
                                            targets::Report& report);
    Task<Result<domain::Response>> dispatch_outside(policy::Dispatch leave, targets::Target& target,
                                                    Relay& relay, targets::Report& report);
    Task<Result<void>> depart(const domain::TargetSpec& target);
    Result<void> still_wanted() const;
    domain::Attempt line_of(const router::Plan::Step& step) const;
    void close(const router::Plan::Step& step, const targets::Report& report, const Relay& relay,
               MonoTime started, const Result<domain::Response>& answered);

    const Parts& parts_;
    const Prepared& prepared_;
    const domain::Request& request_;
    PlaceholderMaps& maps_;
    AnswerSink& sink_;
    domain::Trace& trace_;
    bool begun_ = false;
    bool last_word_ = false;  // whatever the last attempt said, no other may follow
};

}  // namespace molly::pipeline
