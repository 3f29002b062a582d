#include "scenarios/rehearsal.h"

#include <utility>

namespace molly::scenarios {

Rehearsal::Rehearsal(const Scenario& scenario)
    : policy_(scenario.policy), routing_(scenario.routing) {
    for (const DeclaredTarget& declared : scenario.targets) {
        router::TargetView view;
        view.spec = std::make_shared<const domain::TargetSpec>(declared.spec);
        view.first_token_ms = static_cast<double>(declared.spec.first_token.count());
        view.token_ms = 1000 / declared.spec.tokens_per_second;
        views_.push_back(std::move(view));
        names_.push_back(declared.spec.id);
    }
}

Result<std::unique_ptr<Rehearsal>> Rehearsal::make(const Scenario& scenario) {
    std::unique_ptr<Rehearsal> rehearsal(new Rehearsal(scenario));
    TRY(rehearsal->annotator_, annotate::Annotator::make(scenario.labels));
    return rehearsal;
}

Played Rehearsal::ask(domain::Request request) {
    request.id = "request-" + std::to_string(++asked_);
    Played played;
    played.trace.id = request.id;
    // An id alone is anybody's word.
    if (!request.extensions.conversation.empty())
        played.trace.conversation = request.caller.member + "/" + request.extensions.conversation;
    const auto placed = place(std::move(request), played.trace);
    if (!placed) played.error = placed.error();
    const std::string& conversation = played.trace.conversation;
    if (!conversation.empty() && !played.trace.signals.empty())
        labels_[conversation] = played.trace.label;
    return played;
}

Result<void> Rehearsal::place(domain::Request request, domain::Trace& trace) {
    const std::string model = request.model;
    const auto known = labels_.find(trace.conversation);
    const auto sticky = known == labels_.end() ? std::nullopt : std::optional(known->second);
    TRY(domain::AnnotatedRequest annotated, annotator_->annotate(std::move(request), sticky));
    annotated.conversation = trace.conversation;
    trace.label = annotated.label;
    trace.signals = annotated.signals;
    trace.declassified = annotated.declassified;
    trace.capability = annotated.capability;
    TRY(const router::Wanted wanted, router::resolve_model(model, names_, routing_));
    TRY(const policy::ClearedRequest cleared, policy_.clear(std::move(annotated)));
    TRY(const router::Plan plan, router::plan(cleared, wanted, views_, routing_, trace.decision));
    return {};
}

}  // namespace molly::scenarios
