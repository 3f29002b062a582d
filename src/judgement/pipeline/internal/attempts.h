#pragma once
// Tries the steps of one plan: one after the other, several at once, or one against another. Lives
// on one coroutine.
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "domain/trace.h"
#include "pipeline/internal/attempt.h"
#include "pipeline/internal/prepared.h"
#include "pipeline/internal/verifier.h"
#include "pipeline/pipeline.h"

namespace molly::pipeline {

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
    using Tried = std::unique_ptr<Attempt>;
    /// An answer that is held back, because another tier may do better.
    struct Held {
        Tried attempt;
        Outcome outcome;
        double worth = 0;
        domain::Tier tier = domain::Tier::t0;  // the highest that was asked in vain
    };
    /// How sure one may be of an answer, and who says so.
    struct Sureness {
        double value = 0;
        domain::ConfidenceSource from = domain::ConfidenceSource::logprobs;
    };
    struct Race;
    struct Runner;

    // attempts.cc: one step after the other.
    bool is_next(std::size_t at);
    Task<Result<std::optional<Outcome>>> follow(std::size_t at);
    Task<Result<std::optional<Outcome>>> conclude(Tried attempt, std::optional<Sureness> sureness,
                                                  bool may_reject);
    Task<Result<void>> tell(Attempt& attempt);
    void fell(const Attempt& attempt);
    void hold(Tried attempt, double worth);
    Task<Result<Outcome>> settle();
    Result<void> still_wanted() const;
    bool affordable(domain::Money cost, domain::Money more) const;
    bool in_time(const Step& step, std::chrono::milliseconds after) const;
    bool measures(const Step& step) const noexcept;
    bool rises_above(const Step& step, std::size_t from, domain::Money pending) const;
    double worth_of(const Step& step, const Sureness& sureness) const;

    // confidence.cc: how sure may one be of an answer?
    Task<std::optional<Sureness>> sureness_of(const Attempt& attempt, bool may_reject);
    bool samples(const Step& step) const;
    Task<Result<std::optional<Outcome>>> sample(std::size_t at);
    Task<std::optional<Sureness>> verify(const Attempt& judged);
    std::optional<Step> verification_by(const Verifier& verifier) const;
    std::shared_ptr<const policy::ClearedRequest> question_about(const Attempt& judged,
                                                                 bool own) const;
    using Change = std::function<void(domain::Request&)>;
    std::shared_ptr<const policy::ClearedRequest> variant(const Change& change) const;

    // together.cc: several at once.
    Task<Result<std::optional<Outcome>>> mix();
    std::optional<std::size_t> rival_of(std::size_t at) const;
    std::optional<std::chrono::milliseconds> patience_with(const Step& step) const;
    Task<Result<std::optional<Outcome>>> race(std::size_t at, std::size_t rival);
    Task<void> run_race(const std::shared_ptr<Race>& race, std::size_t at, std::size_t rival);
    void start(const std::shared_ptr<Race>& race, std::size_t number, const Step& step);
    void note_loser(const Attempt& loser);

    Venture venture_;
    const Prepared& prepared_;
    const domain::Request& request_;
    std::optional<Held> held_;
    std::vector<bool> used_;  // steps that raced already
    Error last_;
    bool begun_ = false;
    bool over_ = false;  // no other attempt may follow
};

}  // namespace molly::pipeline
