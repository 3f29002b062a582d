#include "pipeline/internal/attempts.h"

#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/coroutine.h"
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
      trace_(trace) {}

Task<Result<Outcome>> Attempts::run() {
    Result<Outcome> last = fail(
        Error(ErrorCode::unavailable,
              "every permitted target is being tried by another request; try again in a moment")
            .reason("targets_down")
            .retry_after(std::chrono::seconds(1)));
    for (const router::Plan::Step& step : prepared_.plan.steps) {
        if (auto wanted = still_wanted(); !wanted) {
            last = fail(std::move(wanted).error());
            break;
        }
        if (!parts_.health.admit(step.target->id)) continue;
        last = co_await attempt(step);
        if (last || begun_ || last_word_ || is_final(last.error().code())) break;
    }
    if (last) co_return last;
    co_return fail(naming_attempts(last.error(), trace_.attempts));
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
router::Plan::Step Attempts::exact(const router::Plan::Step& planned) const {
    router::Plan::Step step = planned;
    const targets::Target* target = find(parts_.targets, step.target.get());
    if (step.adapter.empty() || target == nullptr) return step;
    if (auto version = target->adapter(step.adapter)) step.adapter = *std::move(version);
    return step;
}

Task<Result<Outcome>> Attempts::attempt(const router::Plan::Step& planned) {
    const router::Plan::Step step = exact(planned);
    const MonoTime started = parts_.clock.now();
    Served served{
        .receipt = request_.id,
        .target = step.target->id,
        .adapter = step.adapter,
        .tier = step.target->tier,
        .model = step.adapter.empty() ? step.target->id : step.target->id + "/" + step.adapter,
        .aliased = prepared_.aliased};
    Relay relay(sink_, std::move(served), parts_.clock, request_.stream);
    targets::Report report;
    trace_.attempts.push_back(line_of(step));
    Result<domain::Response> answered = co_await dispatch(step, relay, report);
    begun_ = relay.begun();
    close(step, report, relay, started, answered);
    if (!answered) {
        last_word_ =
            last_word_ || relay.edge_gone() || (report.body_accepted && paid(*step.target));
        co_return fail(std::move(answered).error());
    }
    Outcome outcome;
    outcome.served = relay.take_served();
    outcome.response = relay.take_response();
    outcome.response.target = step.target->id;
    outcome.response.adapter = step.adapter;
    outcome.response.model = std::move(answered->model);
    outcome.response.model_hash = std::move(answered->model_hash);
    outcome.response.embeddings = std::move(answered->embeddings);
    outcome.response.usage = trace_.attempts.back().usage;
    co_return outcome;
}

Task<Result<domain::Response>> Attempts::dispatch(const router::Plan::Step& step, Relay& relay,
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

domain::Attempt Attempts::line_of(const router::Plan::Step& step) const {
    domain::Attempt line;
    line.target = step.target->id;
    line.adapter = step.adapter;
    line.tier = step.target->tier;
    if (!step.target->local) line.endpoint = to_string(step.target->endpoint);
    return line;
}

void Attempts::close(const router::Plan::Step& step, const targets::Report& report,
                     const Relay& relay, MonoTime started,
                     const Result<domain::Response>& answered) {
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
