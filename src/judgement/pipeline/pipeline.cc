#include "pipeline/pipeline.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/coroutine.h"
#include "base/log.h"
#include "pipeline/internal/adapter_label.h"
#include "pipeline/internal/attempts.h"
#include "pipeline/internal/conversation.h"
#include "pipeline/internal/counts.h"
#include "pipeline/internal/placeholder_maps.h"
#include "pipeline/internal/recognition.h"
#include "pipeline/internal/record.h"
#include "pipeline/internal/room.h"
#include "seal/seal.h"

namespace molly::pipeline {
namespace {

std::string fingerprint_key(const std::string& conversation_key) {
    const seal::Hash key = seal::keyed_hash(conversation_key, "fingerprints");
    return {key.begin(), key.end()};
}

/// The adapters of declared specialists that the target has.
std::vector<std::string> specialists_of(const targets::Target& target) {
    std::vector<std::string> names;
    for (const domain::Specialist& one : target.spec().specialists) {
        const bool known = std::find(names.begin(), names.end(), one.adapter) != names.end();
        if (!known && !one.adapter.empty() && target.adapter(one.adapter))
            names.push_back(one.adapter);
    }
    return names;
}

std::vector<std::shared_ptr<const domain::TargetSpec>> specs_of(
    const std::vector<targets::Target*>& targets) {
    std::vector<std::shared_ptr<const domain::TargetSpec>> specs;
    specs.reserve(targets.size());
    for (const targets::Target* target : targets)
        specs.push_back(target->shared_spec());
    return specs;
}

/// Says of the candidates that cost more than `room` that the key's budget has less left.
void leave_out(domain::Decision& decision, domain::Money room) {
    for (domain::Candidate& one : decision.candidates) {
        if (!one.excluded_by.empty() || one.cost <= room) continue;
        one.excluded_by = fmt::format("it would cost about {} and the key's budget has less left",
                                      to_string(one.cost));
    }
}

}  // namespace

Pipeline::Pipeline(Parts parts, Options options)
    : parts_(std::move(parts)),
      options_(options),
      roster_(specs_of(parts_.targets), parts_.estimates),
      presence_(parts_.targets, roster_),
      fingerprinter_(fingerprint_key(parts_.conversation_key)),
      lowered_(std::make_unique<LoweredConversations>()),
      counts_(std::make_unique<Counts>(parts_.metrics)),
      maps_(std::make_unique<PlaceholderMaps>(options_.placeholder_maps_max)) {
    // Parts owns these, and outlives the pipeline.
    use({.annotator = {std::shared_ptr<void>(), &parts_.annotator},
         .policy = {std::shared_ptr<void>(), &parts_.policy},
         .hash = {}});
    for (const targets::Target* target : parts_.targets) {
        names_.push_back(target->spec().id);
        measures_confidence_ = measures_confidence_ || router::measures_confidence(target->spec());
    }
}

Pipeline::~Pipeline() = default;

void Pipeline::use(Rules rules) {
    rules_.store(std::make_shared<const Rules>(std::move(rules)));
    parts_.metrics
        .gauge("molly_detection_complete",
               "1 while every configured detector is loaded; 0 closes T3 to everything.")
        .set(detects() ? 1 : 0);
}

/// Label, clear, plan, reserve, try, record: nothing else happens to a request.
Task<Result<Answered>> Pipeline::run(domain::Request request, const members::Key& key,
                                     AnswerSink& sink) {
    request.deadline = std::min(request.deadline, parts_.clock.now() + options_.request_timeout);
    const MonoTime arrived = request.received == MonoTime() ? parts_.clock.now() : request.received;
    domain::Trace trace = begin_trace(request, parts_.clock.wall());
    Result<Prepared> prepared = place(std::move(request), trace, Memory::keep);
    if (prepared) {
        if (auto reserved = reserve(*prepared, key, trace); !reserved)
            prepared = fail(std::move(reserved).error());
    }
    if (!prepared) {
        note_outcome(trace, &prepared.error(), false);
        Result<Outcome> refused = fail(std::move(prepared).error());
        co_return co_await record(std::move(trace), arrived, nullptr, std::move(refused));
    }
    Attempts attempts(parts_, *prepared, *maps_, sink, trace);
    Result<Outcome> outcome = co_await attempts.run();
    if (outcome) {
        trace.caveat = outcome->response.caveat;
        label_answer(trace, prepared->cleared->request(), outcome->response);
    }
    note_outcome(trace, outcome ? nullptr : &outcome.error(), attempts.begun());
    co_return co_await record(std::move(trace), arrived, &*prepared, std::move(outcome));
}

Result<Prepared> Pipeline::place(domain::Request request, domain::Trace& trace,
                                 Memory memory) const {
    const std::shared_ptr<const Rules> rules = rules_.load();
    std::string conversation = conversation_of(request, parts_.conversation_key);
    const std::string model = request.model;
    const auto sticky =
        conversation.empty() ? std::nullopt : parts_.store.conversation_label(conversation);
    TRY(domain::AnnotatedRequest annotated, rules->annotator->annotate(std::move(request), sticky));
    annotated.conversation = conversation;
    annotated.time = parts_.clock.wall();
    if (options_.fingerprints && parts_.store.knows_fingerprints() &&
        !lowered_->contains(conversation))
        recognise(fingerprinter_, parts_.store, annotated);
    const bool known_again =
        options_.fingerprints && memory == Memory::keep &&
        worth_knowing(annotated.label, annotated.signals, options_.fingerprints_above);
    if (known_again) remember(fingerprinter_, parts_.store, annotated.request, annotated.label);
    trace.rules_hash = rules->hash;
    trace.conversation = std::move(conversation);
    trace.label = annotated.label;
    trace.signals = annotated.signals;
    trace.declassified = annotated.declassified;
    trace.capability = annotated.capability;
    // Confidence is read from them; a caller who did not ask for them gets none.
    if (measures_confidence_ && annotated.request.operation != domain::Operation::embed)
        annotated.request.sampling.logprobs = true;
    TRY(const router::Wanted wanted, router::resolve_model(model, names_, parts_.routing));
    TRY(policy::ClearedRequest cleared, rules->policy->clear(std::move(annotated)));
    TRY(router::Plan plan, plan_for(cleared, wanted, *rules->policy, trace.decision));
    Prepared prepared;
    prepared.cleared = std::make_shared<const policy::ClearedRequest>(std::move(cleared));
    prepared.plan = std::move(plan);
    prepared.aliased = wanted.aliased;
    prepared.rules = rules;
    return prepared;
}

Result<router::Plan> Pipeline::plan_for(const policy::ClearedRequest& cleared,
                                        const router::Wanted& wanted,
                                        const policy::PolicyEngine& policy,
                                        domain::Decision& explanation) const {
    const auto shares = shares_of(cleared.request());
    const auto expected = expected_of(cleared.request());
    const std::string& adapter =
        wanted.adapter.empty() ? cleared.request().extensions.adapter : wanted.adapter;
    if (adapter.empty()) {
        return router::plan(cleared, wanted, roster_, moment_for(cleared, policy), parts_.routing,
                            explanation, shares, expected);
    }
    auto planned = router::plan(cleared, wanted, views_for(cleared, adapter, policy),
                                parts_.routing, explanation, parts_.estimates, shares, expected);
    if (planned) return planned;
    return fail(tell_adapters(std::move(planned).error(), adapter, cleared.request().caller));
}

std::vector<router::SpecialistShare> Pipeline::shares_of(const domain::Request& request) const {
    std::vector<router::SpecialistShare> out;
    if (parts_.specialists == nullptr) return out;
    const std::vector<double> shares = parts_.specialists->shares(request);
    for (std::size_t i = 0; i < shares.size(); ++i) {
        const annotate::SpecialistPrompts& one = parts_.specialists->declared()[i];
        out.push_back({.target = one.target,
                       .adapter = one.adapter,
                       .share = shares[i],
                       .least = one.share_min});
    }
    return out;
}

std::vector<router::Expectation> Pipeline::expected_of(const domain::Request& request) const {
    std::vector<router::Expectation> out;
    if (parts_.expectations == nullptr) return out;
    const std::vector<double> scores = parts_.expectations->of(request);
    for (std::size_t i = 0; i < scores.size(); ++i) {
        const auto model =
            router::resolve_model(parts_.expectations->models()[i], names_, router::Options{});
        if (model && !model->target.empty())
            out.push_back({.target = model->target, .adapter = model->adapter, .score = scores[i]});
    }
    return out;
}

/// Room for the dearest answer; where several may be asked for, for all of them, if the key has as
/// much. A budget that has less keeps the steps that it has room for, one at a time.
Result<void> Pipeline::reserve(Prepared& prepared, const members::Key& key,
                               domain::Trace& trace) const {
    const std::uint64_t tokens =
        std::uint64_t{trace.capability.prompt_tokens} + trace.capability.answer_tokens;
    std::vector<router::Plan::Step>& steps = prepared.plan.steps;
    std::set<domain::Money> costs;
    for (const router::Plan::Step& step : steps)
        costs.insert(step.cost);
    const Room all = room_of(prepared.plan, trace.capability, parts_);
    if (all.answers > 1) {
        auto room =
            parts_.members.reserve(key, tokens * all.answers, std::max(*costs.rbegin(), all.cost));
        if (room) {
            prepared.reservation = *std::move(room);
            return {};
        }
        prepared.several = false;
    }
    std::optional<Error> refused;
    for (auto cost = costs.rbegin(); cost != costs.rend(); ++cost) {
        auto room = parts_.members.reserve(key, tokens, *cost);
        if (room) {
            prepared.reservation = *std::move(room);
            std::erase_if(steps, [&](const auto& step) { return step.cost > *cost; });
            leave_out(trace.decision, *cost);
            return {};
        }
        if (!refused) refused = std::move(room).error();
        if (refused->code() != ErrorCode::exhausted) break;
    }
    return fail(*std::move(refused));
}

/// What an answer says for the first time raises the label under which it is kept, and which sticks
/// to the conversation.
void Pipeline::label_answer(domain::Trace& trace, const domain::Request& asked,
                            const domain::Response& response) const {
    domain::Message turn;
    turn.role = domain::Role::assistant;
    if (!response.text.empty()) {
        domain::Part part;
        part.text = response.text;
        turn.parts.push_back(std::move(part));
    }
    turn.reasoning = response.reasoning;
    turn.tool_calls = response.tool_calls;
    domain::Request said;
    said.messages.push_back(std::move(turn));
    said.caller.member = asked.caller.member;
    said.caller.app = asked.caller.app;
    said.caller.lowest_class = domain::Sensitivity::public_;
    said.extensions.tags = asked.extensions.tags;
    // What is found in it raises that; what could not is not looked for.
    said.extensions.sensitivity = trace.label.sensitivity;
    const auto found = rules_.load()->annotator->annotate(std::move(said), std::nullopt);
    if (!found) return;
    domain::Label joined = join(trace.label, found->label);
    if (joined == trace.label) return;
    trace.signals.push_back({"answer", found->label.sensitivity, 1});
    trace.label = std::move(joined);
}

/// Settles what was reserved and commits trace and receipt. An answer whose record cannot be
/// written is none: nobody could prove where its bytes went.
Task<Result<Answered>> Pipeline::record(domain::Trace trace, MonoTime arrived, Prepared* prepared,
                                        Result<Outcome> outcome) {
    add_up(trace);
    trace.duration =
        std::chrono::duration_cast<std::chrono::microseconds>(parts_.clock.now() - arrived);
    if (prepared != nullptr && tokens_of(trace) > 0)
        prepared->reservation->settle(tokens_of(trace), trace.cost);
    if (prepared != nullptr) prepared->reservation.reset();
    counts_->ended(trace, outcome ? nullptr : &outcome.error());
    Answered answered;
    if (outcome) {
        trace.model = outcome->response.model;
        trace.model_hash = outcome->response.model_hash;
        trace.finish = outcome->response.finish;
        outcome->response.first_token = trace.first_token;
        outcome->response.duration = trace.duration;
        answered.trace = std::make_shared<const domain::Trace>(trace);
        if (options_.fingerprints &&
            worth_knowing(trace.label, trace.signals, options_.fingerprints_above))
            parts_.store.remember(fingerprinter_.of(outcome->response.text.text()), trace.label);
    }
    const std::string id = trace.id;
    auto learned = learn_verified(trace);
    const Result<void> committed = co_await parts_.store.append(std::move(trace));
    if (!committed) {
        log_event(LogLevel::error, "trace_not_committed",
                  {{"id", id}, {"code", to_string(committed.error().code())}});
    }
    if (committed && !learned.empty()) {
        const auto kept = co_await parts_.store.put_estimates(std::move(learned));
        if (!kept) {
            log_event(LogLevel::error, "estimates_not_kept",
                      {{"id", id}, {"code", to_string(kept.error().code())}});
        }
    }
    if (!outcome) co_return fail(std::move(outcome).error());
    if (!committed) co_return fail(unrecorded(committed.error()));
    answered.served = std::move(outcome->served);
    answered.response = std::move(outcome->response);
    co_return answered;
}

Result<domain::Decision> Pipeline::explain(domain::Request request,
                                           const members::Key& /*key*/) const {
    TRY(domain::Trace trace, rehearse(std::move(request)));
    return std::move(trace.decision);
}

Result<domain::Trace> Pipeline::rehearse(domain::Request request) const {
    domain::Trace trace;
    TRY_DO(place(std::move(request), trace, Memory::leave));
    return trace;
}

/// Whether the detectors look at everything: of a text that holds nothing.
bool Pipeline::detects() const {
    domain::Request nothing;
    nothing.messages.push_back(domain::text_message(domain::Role::user, "-"));
    // Of the lowest class, which everything that is found could raise.
    nothing.caller.lowest_class = domain::Sensitivity::public_;
    nothing.extensions.sensitivity = domain::Sensitivity::public_;
    const std::shared_ptr<const Rules> rules = rules_.load();
    const auto searched = rules->annotator->annotate(std::move(nothing), std::nullopt);
    return searched && searched->detection_complete;
}

std::string_view Pipeline::third_parties() const {
    const bool declared = std::any_of(
        parts_.targets.begin(), parts_.targets.end(),
        [](const targets::Target* target) { return target->spec().tier == domain::Tier::t3; });
    if (!declared) return "no_target";
    if (!rules_.load()->policy->permits_t3()) return "no_permit";
    return detects() ? "open" : "no_detection";
}

/// A refusal for want of an adapter says which there are, to a key that may use them all.
Error Pipeline::tell_adapters(Error refusal, const std::string& adapter,
                              const domain::Caller& caller) const {
    if (adapter.empty() || refusal.code() != ErrorCode::not_found || !caller.models.empty())
        return refusal;
    for (const targets::Target* target : parts_.targets) {
        if (!target->spec().local) continue;
        if (auto found = target->adapter(adapter); !found) return std::move(found).error();
    }
    return refusal;
}

/// The targets as this request finds them: an adapter's own label may keep it from answering.
std::vector<router::TargetView> Pipeline::views_for(const policy::ClearedRequest& cleared,
                                                    const std::string& adapter,
                                                    const policy::PolicyEngine& policy) const {
    std::vector<router::TargetView> seen = views(adapter);
    for (std::size_t i = 0; i < seen.size(); ++i) {
        for (const std::string& name : seen[i].adapters) {
            auto label = parts_.targets[i]->adapter_label(name);
            if (!label) continue;  // removed just now: it is asked for again before the attempt
            auto allowed = check_adapter(policy, cleared.annotated(), *label, *seen[i].spec);
            if (!allowed) seen[i].adapters_denied[name] = allowed.error().message();
        }
    }
    return seen;
}

/// The same for a request that names no adapter: which of the declared ones are there.
router::Moment Pipeline::moment_for(const policy::ClearedRequest& cleared,
                                    const policy::PolicyEngine& policy) const {
    router::Moment moment;
    moment.targets.resize(parts_.targets.size());
    for (std::size_t i = 0; i < parts_.targets.size(); ++i)
        moment.targets[i].queue_depth = parts_.targets[i]->queue_depth();
    parts_.health.look(roster_.targets(), moment.targets);
    presence_.look(cleared, policy, moment);
    return moment;
}

std::vector<router::TargetView> Pipeline::views(const std::string& adapter) const {
    std::vector<router::TargetView> views(parts_.targets.size());
    for (std::size_t i = 0; i < views.size(); ++i) {
        views[i].spec = parts_.targets[i]->shared_spec();
        views[i].queue_depth = parts_.targets[i]->queue_depth();
        if (!adapter.empty() && parts_.targets[i]->adapter(adapter)) views[i].adapters = {adapter};
        if (adapter.empty()) views[i].adapters = specialists_of(*parts_.targets[i]);
        parts_.health.look(views[i]);
    }
    return views;
}

}  // namespace molly::pipeline
