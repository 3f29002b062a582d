#pragma once
// Tries the steps of one plan in order. Lives on one coroutine.
#include <memory>
#include <optional>

#include "domain/trace.h"
#include "pipeline/internal/relay.h"
#include "pipeline/pipeline.h"

namespace molly::pipeline {

class PlaceholderMaps;

/// A request that may be attempted: cleared, planned, with room reserved in its key's limits.
struct Prepared {
    std::shared_ptr<const policy::ClearedRequest> cleared;
    router::Plan plan;
    bool aliased = false;
    bool escalates = true;               ///< the key's limits have room for more than one answer
    std::shared_ptr<const Rules> rules;  ///< by which it was cleared
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
    Attempts(const Attempts&) = delete;
    Attempts& operator=(const Attempts&) = delete;
    Attempts(Attempts&&) = delete;
    Attempts& operator=(Attempts&&) = delete;
    ~Attempts();

    /// The first answer that its step is confident enough of, else the most confident one with a
    /// caveat. Another step is tried only before the first Delta reached the edge, never after a
    /// refusal, never where an attempt might be paid for twice, and after a doubtful answer only on
    /// a higher tier and within the request's limits.
    /// Errors: those of the last attempt, with all attempts named.
    Task<Result<Outcome>> run();

    /// Whether the edge has begun to answer.
    bool begun() const noexcept { return begun_; }

private:
    using Step = router::Plan::Step;
    /// An answer that is held back, because another tier may do better.
    struct Held {
        std::unique_ptr<Relay> relay;
        Outcome outcome;
        double worth = 0;
        std::size_t line = 0;                  // in the trace
        domain::Tier tier = domain::Tier::t0;  // the highest that was asked in vain
    };

    Step exact(const Step& planned) const;
    Task<Result<std::optional<Outcome>>> attempt(const Step& planned, bool may_reject);
    Result<domain::Label> label_of(const Step& step) const;
    Task<Result<domain::Response>> dispatch(const Step& step, Relay& relay,
                                            targets::Report& report);
    Task<Result<domain::Response>> dispatch_outside(policy::Dispatch leave, targets::Target& target,
                                                    Relay& relay, targets::Report& report);
    Task<Result<void>> depart(const domain::TargetSpec& target);
    Result<void> still_wanted() const;
    bool affordable(const Step& step, domain::Money more) const;
    bool in_time(const Step& step, std::chrono::milliseconds after) const;
    bool measures(const Step& step) const noexcept;
    bool escalates_beyond(std::size_t at) const;
    std::optional<double> confidence_in(const Step& step, const Relay& relay) const;
    double worth_of(const Step& step, double sureness) const;
    void hold(std::unique_ptr<Relay> relay, Outcome outcome, double worth, domain::Tier tier);
    Task<Result<Outcome>> settle();
    domain::Attempt line_of(const Step& step) const;
    void close(const Step& step, const targets::Report& report, const Relay& relay,
               MonoTime started, const Result<domain::Response>& answered);

    const Parts& parts_;
    const Prepared& prepared_;
    const domain::Request& request_;
    PlaceholderMaps& maps_;
    AnswerSink& sink_;
    domain::Trace& trace_;
    MonoTime started_;
    std::optional<Held> held_;
    bool begun_ = false;
    bool last_word_ = false;  // whatever the last attempt said, no other may follow
};

}  // namespace molly::pipeline
