#include "pipeline/internal/attempts.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/coroutine.h"

namespace molly::pipeline {
namespace {

using std::chrono::duration_cast;
using std::chrono::microseconds;

/// Codes after which another target would be asked in vain, or must not be asked.
bool is_final(ErrorCode code) noexcept {
    return code == ErrorCode::denied || code == ErrorCode::invalid_request ||
           code == ErrorCode::cancelled;
}

Error all_taken() {
    Error error(ErrorCode::unavailable,
                "every permitted target is being tried by another request; try again in a moment");
    std::ignore = std::move(error).reason("targets_down").retry_after(std::chrono::seconds(1));
    return error;
}

/// The error with the attempts that led to it: targets and codes, no content.
Error naming_attempts(const Error& error, const std::vector<domain::Attempt>& attempts) {
    if (attempts.empty() || error.code() == ErrorCode::cancelled) return error;
    std::string list;
    for (const domain::Attempt& attempt : attempts) {
        list += fmt::format("{}{} {}", list.empty() ? "" : ", ", attempt.target,
                            attempt.failed ? to_string(*attempt.failed) : "answered");
    }
    Error named(error.code(), fmt::format("{} (attempts: {})", error.message(), list));
    // Assigning the result to itself would empty the message.
    if (error.retry_after()) std::ignore = std::move(named).retry_after(*error.retry_after());
    return std::move(named)
        .reason(error.reason())
        .param(error.param())
        .italian(fmt::format("{} (tentativi: {})", error.message_italian(), list));
}

}  // namespace

Attempts::Attempts(const Parts& parts, const Prepared& prepared, PlaceholderMaps& maps,
                   AnswerSink& sink, domain::Trace& trace)
    : venture_{.parts = parts,
               .prepared = prepared,
               .maps = maps,
               .sink = sink,
               .trace = trace,
               .started = parts.clock.now()},
      prepared_(prepared),
      request_(prepared.cleared->request()),
      used_(prepared.plan.steps.size(), false),
      last_(all_taken()) {}

Attempts::~Attempts() = default;

Task<Result<Outcome>> Attempts::run() {
    const router::Plan& plan = prepared_.plan;
    std::size_t at = 0;
    if (plan.mixture > 1 && prepared_.several) {
        auto mixed = co_await mix();
        if (mixed && *mixed) co_return std::move(**mixed);
        at = plan.mixture;
    }
    for (; at < plan.steps.size() && !over_; ++at) {
        if (!is_next(at)) continue;
        auto answered = co_await follow(at);
        if (answered && *answered) co_return std::move(**answered);
    }
    if (held_ && !begun_ && last_.code() != ErrorCode::cancelled) co_return co_await settle();
    co_return fail(naming_attempts(last_, venture_.trace.attempts));
}

/// Whether this step may be asked now. Notes when nobody may.
bool Attempts::is_next(std::size_t at) {
    if (auto wanted = still_wanted(); !wanted) {
        last_ = std::move(wanted).error();
        over_ = true;
        return false;
    }
    const Step& step = prepared_.plan.steps[at];
    if (used_[at]) return false;
    if (held_ && (step.target->tier <= held_->tier || !in_time(step, {}))) return false;
    if (!venture_.trace.attempts.empty() && !affordable(step.cost, {})) return false;
    return venture_.parts.health.admit(step.target->id);
}

/// Asks the target of one step. Nothing when its answer is held.
Task<Result<std::optional<Outcome>>> Attempts::follow(std::size_t at) {
    const Step& step = prepared_.plan.steps[at];
    const bool may_reject = rises_above(step, at + 1, step.cost);
    if (may_reject && samples(step)) co_return co_await sample(at);
    const auto rival = may_reject ? std::nullopt : rival_of(at);
    if (rival) co_return co_await race(at, *rival);
    Attempt::Manner manner;
    manner.release = may_reject ? Release::on_word : Release::at_once;
    manner.measures = measures(step);
    auto attempt = std::make_unique<Attempt>(venture_, step, std::move(manner));
    co_await attempt->run();
    begun_ = attempt->relay().begun();
    if (!attempt->answered()) {
        fell(*attempt);
        co_return fail(last_);
    }
    const std::optional<Sureness> sureness = co_await sureness_of(*attempt, may_reject);
    co_return co_await conclude(std::move(attempt), sureness, may_reject);
}

/// What is done about an answer of this sureness: told, or held for want of it.
Task<Result<std::optional<Outcome>>> Attempts::conclude(Tried attempt,
                                                        std::optional<Sureness> sureness,
                                                        bool may_reject) {
    const Step& step = attempt->step();
    if (sureness) {
        attempt->line().confidence = sureness->value;
        attempt->line().confidence_from = sureness->from;
    }
    const double worth = sureness ? worth_of(step, *sureness) : 1;
    const bool doubtful = worth < step.confidence_min;
    if (doubtful && may_reject) {
        attempt->line().rejected = true;
        hold(std::move(attempt), worth);
        co_return std::optional<Outcome>();
    }
    Outcome outcome = attempt->take_outcome();
    if (doubtful) outcome.response.caveat = "low_confidence";
    CO_TRY_DO(co_await tell(*attempt));
    co_return outcome;
}

/// A held answer is the one.
Task<Result<void>> Attempts::tell(Attempt& attempt) {
    if (!attempt.relay().withholds()) co_return Result<void>();
    begun_ = true;
    venture_.trace.first_token =
        duration_cast<microseconds>(venture_.parts.clock.now() - venture_.started);
    Result<void> told = co_await attempt.relay().release();
    if (!told) last_ = told.error();
    over_ = over_ || !told;
    co_return told;
}

/// Notes an attempt that failed.
void Attempts::fell(const Attempt& attempt) {
    last_ = attempt.error();
    over_ = begun_ || attempt.last_word() || is_final(last_.code());
}

/// The best answer that there is, although nobody is sure of it.
Task<Result<Outcome>> Attempts::settle() {
    held_->attempt->line().rejected = false;
    Outcome outcome = std::move(held_->outcome);
    outcome.response.caveat = "low_confidence";
    CO_TRY_DO(co_await tell(*held_->attempt));
    co_return outcome;
}

/// The most confident of the doubtful answers stays, on the highest tier that was asked.
void Attempts::hold(Tried attempt, double worth) {
    const domain::Tier tier = attempt->step().target->tier;
    if (held_ && held_->worth >= worth) {
        held_->tier = tier;
        return;
    }
    Outcome outcome = attempt->take_outcome();
    held_.emplace(Held{std::move(attempt), std::move(outcome), worth, tier});
}

/// Whether another attempt keeps the request's own limit on cost, with all that was spent before
/// and `more` besides.
bool Attempts::affordable(domain::Money cost, domain::Money more) const {
    const auto& cost_max = request_.extensions.cost_max;
    domain::Money spent = more + cost;
    for (const domain::Attempt& line : venture_.trace.attempts)
        spent += line.cost;
    return !cost_max || spent <= *cost_max;
}

/// Whether a second answer would come in time, if it were asked for after so long.
bool Attempts::in_time(const Step& step, std::chrono::milliseconds after) const {
    const auto& latency_max = request_.extensions.latency_max;
    const MonoTime arrived = request_.received;
    return !latency_max || arrived == MonoTime() ||
           venture_.parts.clock.now() - arrived + after + step.latency <= *latency_max;
}

bool Attempts::measures(const Step& step) const noexcept {
    return step.confidence_min > 0 && request_.operation != domain::Operation::embed;
}

/// Whether an answer of this step that nobody is sure of could be replaced by one of a higher tier
/// among the steps `from` there on: where it could not, nothing is held back. `pending`: what it
/// will cost itself.
bool Attempts::rises_above(const Step& step, std::size_t from, domain::Money pending) const {
    const std::vector<Step>& steps = prepared_.plan.steps;
    if (!prepared_.several || !measures(step)) return false;
    return std::any_of(steps.begin() + static_cast<std::ptrdiff_t>(from), steps.end(),
                       [&](const Step& next) {
                           return next.target->tier > step.target->tier &&
                                  affordable(next.cost, pending) && in_time(next, step.latency);
                       });
}

Result<void> Attempts::still_wanted() const {
    if (request_.cancellation && request_.cancellation->cancelled()) {
        return fail(
            Error(ErrorCode::cancelled, "the caller left").italian("il chiamante è uscito"));
    }
    if (venture_.parts.clock.now() < request_.deadline) return {};
    return fail(Error(ErrorCode::deadline_exceeded, "the request's time is over")
                    .italian("il tempo della richiesta è scaduto"));
}

/// The probability that an answer of this sureness is good, as judged answers of the same say.
double Attempts::worth_of(const Step& step, const Sureness& sureness) const {
    const router::Confidences* confidences = venture_.parts.confidences;
    if (confidences == nullptr) return sureness.value;
    const router::Meter meter{.target = step.target->id,
                              .adapter = router::adapter_name(step.adapter),
                              .from = sureness.from};
    return confidences->at(meter, venture_.trace.capability.field(), sureness.value);
}

}  // namespace molly::pipeline
