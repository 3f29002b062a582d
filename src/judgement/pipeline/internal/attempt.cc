#include "pipeline/internal/attempt.h"

#include <utility>

#include "base/coroutine.h"
#include "pipeline/internal/adapter_label.h"
#include "pipeline/internal/placeholder_maps.h"

namespace molly::pipeline {
namespace {

using std::chrono::duration_cast;
using std::chrono::microseconds;

targets::Target* find(const std::vector<targets::Target*>& targets,
                      const domain::TargetSpec* spec) noexcept {
    for (targets::Target* target : targets) {
        if (&target->spec() == spec) return target;
    }
    return nullptr;
}

/// The step with the version that its adapter's name means now; what is promoted later does not
/// touch this request.
Attempt::Step exact(const Attempt::Step& planned, const targets::Target* target) {
    Attempt::Step step = planned;
    if (step.adapter.empty() || target == nullptr) return step;
    if (auto version = target->adapter(step.adapter)) step.adapter = *std::move(version);
    return step;
}

Served served_by(const Attempt::Step& step, const Prepared& prepared) {
    const std::string& id = step.target->id;
    return {.receipt = prepared.cleared->request().id,
            .target = id,
            .adapter = step.adapter,
            .tier = step.target->tier,
            .model = step.adapter.empty() ? id : id + "/" + step.adapter,
            .aliased = prepared.aliased};
}

Relay::Manner manner_of(const Venture& venture, Attempt::Manner& manner) {
    return {.stream = venture.prepared.cleared->request().stream,
            .release = manner.release,
            .measures = manner.measures,
            .hides_logprobs = !venture.trace.capability.logprobs,
            .may_speak = std::move(manner.may_speak)};
}

}  // namespace

Attempt::Attempt(Venture& venture, const Step& planned, Manner manner)
    : venture_(venture),
      step_(exact(planned, find(venture.parts.targets, planned.target.get()))),
      cleared_(manner.cleared ? std::move(manner.cleared) : venture.prepared.cleared),
      target_(find(venture.parts.targets, planned.target.get())),
      relay_(venture.sink, served_by(step_, venture.prepared), venture.parts.clock,
             manner_of(venture, manner)),
      line_(venture.trace.attempts.size()),
      started_(venture.parts.clock.now()) {
    venture.trace.attempts.push_back(new_line(manner.cause));
}

Attempt::~Attempt() = default;

Task<void> Attempt::run() {
    const Result<domain::Label> label = label_of();
    if (label) {
        result_ = co_await dispatch();
    } else {
        result_ = fail(label.error());
    }
    if (label && (result_ || relay_.begun()))
        raise_by_adapter(venture_.trace, step_.adapter, *label);
    close();
}

Outcome Attempt::take_outcome() {
    Outcome outcome;
    outcome.served = relay_.served();
    outcome.response = relay_.take_response();
    outcome.response.target = step_.target->id;
    outcome.response.adapter = step_.adapter;
    outcome.response.model = std::move(result_->model);
    outcome.response.model_hash = std::move(result_->model_hash);
    outcome.response.embeddings = std::move(result_->embeddings);
    outcome.response.prefix = std::move(result_->prefix);
    outcome.response.usage = line().usage;
    return outcome;
}

/// What the step's adapter learned from labels its answer, so policy has to let this request have
/// that: of the version that answers, which may be newer than the plan.
Result<domain::Label> Attempt::label_of() const {
    domain::Label nothing;
    nothing.sensitivity = domain::Sensitivity::public_;
    if (step_.adapter.empty() || target_ == nullptr) return nothing;
    TRY(domain::Label label, target_->adapter_label(step_.adapter));
    TRY_DO(check_adapter(*venture_.prepared.rules->policy, cleared_->annotated(), label,
                         *step_.target));
    return label;
}

Task<Result<domain::Response>> Attempt::dispatch() {
    // What is dispatched is authorised here, whatever the plan was made of (case 24).
    CO_TRY_DO(router::authorise(cleared_->request().caller, *step_.target, step_.adapter));
    CO_TRY(policy::Dispatch leave, policy::Dispatch::to(step_.target, step_.adapter, cleared_));
    if (target_ == nullptr) co_return fail(ErrorCode::internal, "a plan names an unknown target");
    if (step_.target->tier == domain::Tier::t3)
        co_return co_await dispatch_outside(std::move(leave), *target_);
    CO_TRY_DO(co_await depart());
    CO_TRY(domain::Response response, co_await target_->run(std::move(leave), relay_, report_));
    CO_TRY_DO(co_await relay_.begin());
    co_return response;
}

/// To a third party: what cannot be redacted departs nowhere.
Task<Result<domain::Response>> Attempt::dispatch_outside(policy::Dispatch leave,
                                                         targets::Target& target) {
    const auto map = venture_.maps.of(venture_.trace.conversation);
    CO_TRY(policy::Redacted payload, policy::Redactor::redact(std::move(leave), *map));
    line().redactions = payload.redactions();
    CO_TRY_DO(co_await depart());
    CO_TRY(domain::Response response, co_await target.run(std::move(payload), relay_, report_));
    CO_TRY_DO(co_await relay_.begin());
    co_return response;
}

/// Commits that bytes are about to leave this device.
Task<Result<void>> Attempt::depart() {
    if (step_.target->tier == domain::Tier::t0) co_return Result<void>();
    store::Departure departure;
    departure.trace_id = venture_.trace.id;
    departure.attempt = static_cast<std::uint32_t>(line_ + 1);
    departure.target = step_.target->id;
    departure.tier = step_.target->tier;
    departure.endpoint = line().endpoint;
    departure.sensitivity = venture_.trace.label.sensitivity;
    departure.time = venture_.parts.clock.wall();
    Result<void> committed = co_await venture_.parts.store.depart(std::move(departure));
    // A record that cannot be written stops every attempt, not this one only.
    unrecorded_ = !committed;
    co_return committed;
}

domain::Attempt Attempt::new_line(domain::Cause cause) const {
    domain::Attempt line;
    line.target = step_.target->id;
    line.adapter = step_.adapter;
    line.tier = step_.target->tier;
    if (!step_.target->local) line.endpoint = to_string(step_.target->endpoint);
    line.cause = cause;
    return line;
}

void Attempt::close() {
    domain::Attempt& line = this->line();
    const MonoTime now = venture_.parts.clock.now();
    line.bytes_sent = report_.bytes_sent;
    line.bytes_received = report_.bytes_received;
    line.peer_authenticated = report_.peer_authenticated;
    line.drafted = report_.drafted;
    line.accepted = report_.accepted;
    line.duration = duration_cast<microseconds>(now - started_);
    line.first_token = duration_cast<microseconds>(relay_.first_at().value_or(now) - started_);
    if (result_ && result_->usage.source != domain::Usage::Source::none) {
        line.usage = result_->usage;
    } else if (result_ || relay_.first_at() || report_.body_accepted) {
        line.usage = relay_.usage(cleared_->annotated().capability.prompt_tokens);
    }
    line.cost = cost_of(line.usage, step_.target->prices);
    router::Health& health = venture_.parts.health;
    if (result_) {
        health.succeeded(line.target, line.first_token, line.duration, line.usage.answer_tokens);
        return;
    }
    line.failed = result_.error().code();
    line.failure = result_.error().reason();
    // What the caller or our own records broke off says nothing about the target.
    const bool ours = relay_.edge_gone() || unrecorded_;
    health.failed(line.target, ours ? Error(ErrorCode::cancelled, "") : result_.error());
    const bool paid = step_.target->prices != domain::Prices{};
    last_word_ = ours || (report_.body_accepted && paid);
}

}  // namespace molly::pipeline
