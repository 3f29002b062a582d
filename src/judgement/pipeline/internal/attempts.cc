#include "pipeline/internal/attempts.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/coroutine.h"
#include "pipeline/internal/adapter_label.h"
#include "pipeline/internal/placeholder_maps.h"
#include "pipeline/internal/relay.h"

namespace molly::pipeline {
namespace {

using std::chrono::duration_cast;
using std::chrono::microseconds;

bool paid(const domain::TargetSpec& spec) noexcept {
    return spec.prices != domain::Prices{};
}

/// Codes after which another target would be asked in vain, or must not be asked.
bool is_final(ErrorCode code) noexcept {
    return code == ErrorCode::denied || code == ErrorCode::invalid_request ||
           code == ErrorCode::cancelled;
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

targets::Target* find(const std::vector<targets::Target*>& targets,
                      const domain::TargetSpec* spec) noexcept {
    for (targets::Target* target : targets) {
        if (&target->spec() == spec) return target;
    }
    return nullptr;
}

}  // namespace

Attempts::Attempts(const Parts& parts, const Prepared& prepared, PlaceholderMaps& maps,
                   AnswerSink& sink, domain::Trace& trace)
    : parts_(parts),
      prepared_(prepared),
      request_(prepared.cleared->request()),
      maps_(maps),
      sink_(sink),
      trace_(trace),
      started_(parts.clock.now()) {}

Attempts::~Attempts() = default;

Task<Result<Outcome>> Attempts::run() {
    Error last(ErrorCode::unavailable,
               "every permitted target is being tried by another request; try again in a moment");
    std::ignore = std::move(last).reason("targets_down").retry_after(std::chrono::seconds(1));
    const std::vector<Step>& steps = prepared_.plan.steps;
    for (std::size_t at = 0; at < steps.size(); ++at) {
        const Step& step = steps[at];
        if (auto wanted = still_wanted(); !wanted) {
            last = std::move(wanted).error();
            break;
        }
        if (held_ && (step.target->tier <= held_->tier || !in_time(step, {}))) continue;
        if (!trace_.attempts.empty() && !affordable(step, {})) continue;
        if (!parts_.health.admit(step.target->id)) continue;
        auto answered = co_await attempt(step, escalates_beyond(at));
        if (answered && *answered) co_return std::move(**answered);
        if (answered) continue;  // it is held
        last = std::move(answered).error();
        if (begun_ || last_word_ || is_final(last.code())) break;
    }
    if (held_ && !begun_ && last.code() != ErrorCode::cancelled) co_return co_await settle();
    co_return fail(naming_attempts(last, trace_.attempts));
}

/// The best answer that there is, although nobody is sure of it.
Task<Result<Outcome>> Attempts::settle() {
    trace_.attempts[held_->line].rejected = false;
    Outcome outcome = std::move(held_->outcome);
    outcome.response.caveat = "low_confidence";
    begun_ = true;
    trace_.first_token = duration_cast<microseconds>(parts_.clock.now() - started_);
    CO_TRY_DO(co_await held_->relay->release());
    co_return outcome;
}

/// Whether another attempt keeps the request's own limit on cost, with all that was spent before
/// and `more` besides.
bool Attempts::affordable(const Step& step, domain::Money more) const {
    const auto& cost_max = request_.extensions.cost_max;
    domain::Money spent = more + step.cost;
    for (const domain::Attempt& line : trace_.attempts)
        spent += line.cost;
    return !cost_max || spent <= *cost_max;
}

/// Whether a second answer would come in time, if it were asked for after so long.
bool Attempts::in_time(const Step& step, std::chrono::milliseconds after) const {
    const auto& latency_max = request_.extensions.latency_max;
    const MonoTime arrived = request_.received;
    return !latency_max || arrived == MonoTime() ||
           parts_.clock.now() - arrived + after + step.latency <= *latency_max;
}

bool Attempts::measures(const Step& step) const noexcept {
    return step.confidence_min > 0 && request_.operation != domain::Operation::embed;
}

/// Whether an answer of step `at` that nobody is sure of could be replaced by one of a higher tier:
/// where it could not, nothing is held back.
bool Attempts::escalates_beyond(std::size_t at) const {
    const std::vector<Step>& steps = prepared_.plan.steps;
    const Step& step = steps[at];
    if (!prepared_.escalates || !measures(step)) return false;
    return std::any_of(steps.begin() + static_cast<std::ptrdiff_t>(at) + 1, steps.end(),
                       [&](const Step& next) {
                           return next.target->tier > step.target->tier &&
                                  affordable(next, step.cost) && in_time(next, step.latency);
                       });
}

Result<void> Attempts::still_wanted() const {
    if (request_.cancellation && request_.cancellation->cancelled()) {
        return fail(
            Error(ErrorCode::cancelled, "the caller left").italian("il chiamante è uscito"));
    }
    if (parts_.clock.now() < request_.deadline) return {};
    return fail(Error(ErrorCode::deadline_exceeded, "the request's time is over")
                    .italian("il tempo della richiesta è scaduto"));
}

/// The step with the version that its adapter's name means now; what is promoted later does not
/// touch this request.
Attempts::Step Attempts::exact(const Step& planned) const {
    Step step = planned;
    const targets::Target* target = find(parts_.targets, step.target.get());
    if (step.adapter.empty() || target == nullptr) return step;
    if (auto version = target->adapter(step.adapter)) step.adapter = *std::move(version);
    return step;
}

/// What the tokens say of the answer's worth; nothing where they were not told.
std::optional<double> Attempts::confidence_in(const Step& step, const Relay& relay) const {
    if (!measures(step)) return std::nullopt;
    if (relay.empty()) return 0;  // to say nothing is no answer
    return router::sureness_of(relay.logprobs());
}

/// Nothing when the answer is held.
Task<Result<std::optional<Outcome>>> Attempts::attempt(const Step& planned, bool may_reject) {
    const Step step = exact(planned);
    const MonoTime started = parts_.clock.now();
    Served served{
        .receipt = request_.id,
        .target = step.target->id,
        .adapter = step.adapter,
        .tier = step.target->tier,
        .model = step.adapter.empty() ? step.target->id : step.target->id + "/" + step.adapter,
        .aliased = prepared_.aliased};
    const Relay::Manner manner{.stream = request_.stream,
                               .release = may_reject ? Release::on_word : Release::at_once,
                               .measures = measures(step),
                               .hides_logprobs = !trace_.capability.logprobs};
    auto relay = std::make_unique<Relay>(sink_, served, parts_.clock, manner);
    targets::Report report;
    trace_.attempts.push_back(line_of(step));
    const Result<domain::Label> label = label_of(step);
    Result<domain::Response> answered = fail(ErrorCode::internal, "not asked");
    if (label) {
        answered = co_await dispatch(step, *relay, report);
    } else {
        answered = fail(label.error());
    }
    begun_ = relay->begun();
    if (label && (answered || begun_)) raise_by_adapter(trace_, step.adapter, *label);
    close(step, report, *relay, started, answered);
    if (!answered) {
        last_word_ =
            last_word_ || relay->edge_gone() || (report.body_accepted && paid(*step.target));
        co_return fail(std::move(answered).error());
    }
    domain::Attempt& line = trace_.attempts.back();
    line.confidence = confidence_in(step, *relay);
    const double worth = line.confidence ? worth_of(planned, *line.confidence) : 1;
    Outcome outcome;
    outcome.served = std::move(served);
    outcome.response = relay->take_response();
    outcome.response.target = step.target->id;
    outcome.response.adapter = step.adapter;
    outcome.response.model = std::move(answered->model);
    outcome.response.model_hash = std::move(answered->model_hash);
    outcome.response.embeddings = std::move(answered->embeddings);
    outcome.response.usage = line.usage;
    const bool doubtful = worth < step.confidence_min;
    if (doubtful && may_reject) {
        line.rejected = true;
        hold(std::move(relay), std::move(outcome), worth, step.target->tier);
        co_return std::optional<Outcome>();
    }
    if (doubtful) outcome.response.caveat = "low_confidence";
    if (may_reject) {
        begun_ = true;
        trace_.first_token = duration_cast<microseconds>(parts_.clock.now() - started_);
        CO_TRY_DO(co_await relay->release());
    }
    co_return outcome;
}

/// The most confident of the doubtful answers stays, on the highest tier that was asked.
void Attempts::hold(std::unique_ptr<Relay> relay, Outcome outcome, double worth,
                    domain::Tier tier) {
    const std::size_t line = trace_.attempts.size() - 1;
    if (held_ && held_->worth >= worth) {
        held_->tier = tier;
        return;
    }
    held_.emplace(Held{std::move(relay), std::move(outcome), worth, line, tier});
}

/// The probability that an answer of this sureness is good, as judged answers of the same say.
double Attempts::worth_of(const Step& step, double sureness) const {
    if (parts_.confidences == nullptr) return sureness;
    return parts_.confidences->at(step.target->id, router::adapter_name(step.adapter),
                                  trace_.capability.field(), sureness);
}

/// What the step's adapter learned from labels its answer, so policy has to let this request have
/// that: of the version that answers, which may be newer than the plan.
Result<domain::Label> Attempts::label_of(const Step& step) const {
    domain::Label nothing;
    nothing.sensitivity = domain::Sensitivity::public_;
    const targets::Target* target = find(parts_.targets, step.target.get());
    if (step.adapter.empty() || target == nullptr) return nothing;
    TRY(domain::Label label, target->adapter_label(step.adapter));
    TRY_DO(check_adapter(*prepared_.rules->policy, prepared_.cleared->annotated(), label,
                         *step.target));
    return label;
}

Task<Result<domain::Response>> Attempts::dispatch(const Step& step, Relay& relay,
                                                  targets::Report& report) {
    // What is dispatched is authorised here, whatever the plan was made of (case 24).
    CO_TRY_DO(router::authorise(request_.caller, *step.target, step.adapter));
    CO_TRY(policy::Dispatch leave,
           policy::Dispatch::to(step.target, step.adapter, prepared_.cleared));
    targets::Target* target = find(parts_.targets, step.target.get());
    if (target == nullptr) co_return fail(ErrorCode::internal, "a plan names an unknown target");
    if (step.target->tier == domain::Tier::t3)
        co_return co_await dispatch_outside(std::move(leave), *target, relay, report);
    CO_TRY_DO(co_await depart(*step.target));
    CO_TRY(domain::Response response, co_await target->run(std::move(leave), relay, report));
    CO_TRY_DO(co_await relay.begin());
    co_return response;
}

/// To a third party: what cannot be redacted departs nowhere.
Task<Result<domain::Response>> Attempts::dispatch_outside(policy::Dispatch leave,
                                                          targets::Target& target, Relay& relay,
                                                          targets::Report& report) {
    const auto map = maps_.of(trace_.conversation);
    CO_TRY(policy::Redacted payload, policy::Redactor::redact(std::move(leave), *map));
    trace_.attempts.back().redactions = payload.redactions();
    CO_TRY_DO(co_await depart(target.spec()));
    CO_TRY(domain::Response response, co_await target.run(std::move(payload), relay, report));
    CO_TRY_DO(co_await relay.begin());
    co_return response;
}

/// Commits that bytes are about to leave this device.
Task<Result<void>> Attempts::depart(const domain::TargetSpec& target) {
    if (target.tier == domain::Tier::t0) co_return Result<void>();
    store::Departure departure;
    departure.trace_id = request_.id;
    departure.attempt = static_cast<std::uint32_t>(trace_.attempts.size());
    departure.target = target.id;
    departure.tier = target.tier;
    departure.endpoint = trace_.attempts.back().endpoint;
    departure.sensitivity = trace_.label.sensitivity;
    departure.time = parts_.clock.wall();
    last_word_ = true;  // a record that cannot be written stops every attempt, not this one only
    CO_TRY_DO(co_await parts_.store.depart(std::move(departure)));
    last_word_ = false;
    co_return Result<void>();
}

domain::Attempt Attempts::line_of(const Step& step) const {
    domain::Attempt line;
    line.target = step.target->id;
    line.adapter = step.adapter;
    line.tier = step.target->tier;
    if (!step.target->local) line.endpoint = to_string(step.target->endpoint);
    return line;
}

void Attempts::close(const Step& step, const targets::Report& report, const Relay& relay,
                     MonoTime started, const Result<domain::Response>& answered) {
    domain::Attempt& line = trace_.attempts.back();
    const MonoTime now = parts_.clock.now();
    line.bytes_sent = report.bytes_sent;
    line.bytes_received = report.bytes_received;
    line.peer_authenticated = report.peer_authenticated;
    line.duration = duration_cast<microseconds>(now - started);
    line.first_token = duration_cast<microseconds>(relay.first_at().value_or(now) - started);
    if (answered && answered->usage.source != domain::Usage::Source::none) {
        line.usage = answered->usage;
    } else if (answered || relay.first_at() || report.body_accepted) {
        line.usage = relay.usage(trace_.capability.prompt_tokens);
    }
    line.cost = cost_of(line.usage, step.target->prices);
    if (answered) {
        parts_.health.succeeded(line.target, line.first_token, line.duration,
                                line.usage.answer_tokens);
        return;
    }
    line.failed = answered.error().code();
    line.failure = answered.error().reason();
    // What the caller or our own records broke off says nothing about the target.
    const bool ours = relay.edge_gone() || last_word_;
    parts_.health.failed(line.target, ours ? Error(ErrorCode::cancelled, "") : answered.error());
}

}  // namespace molly::pipeline
