#include "policy/policy_engine.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "policy/redactor.h"

namespace molly::policy {
namespace {

using domain::Sensitivity;
using domain::Tier;
using domain::TierSet;

constexpr TierSet every_tier = {Tier::t0, Tier::t1, Tier::t2, Tier::t3};

bool one_of(const std::vector<std::string>& wanted, const std::string& value) {
    return wanted.empty() || std::find(wanted.begin(), wanted.end(), value) != wanted.end();
}

bool any_of(const std::vector<std::string>& wanted, const std::vector<std::string>& values) {
    return wanted.empty() ||
           std::any_of(values.begin(), values.end(),
                       [&](const std::string& value) { return one_of(wanted, value); });
}

/// Whether the rule's conditions hold for this request, besides those about its class.
bool concerns(const Rule& rule, const domain::AnnotatedRequest& annotated, bool unknown_time) {
    const domain::Request& request = annotated.request;
    const domain::Extensions& said = request.extensions;
    const bool time_known = annotated.time != WallTime{};
    const bool in_time =
        !rule.hours || (time_known ? rule.hours->contains(annotated.time) : unknown_time);
    return one_of(rule.conversations, annotated.conversation) && in_time &&
           one_of(rule.members, request.caller.member) && one_of(rule.apps, request.caller.app) &&
           any_of(rule.tags, said.tags) && one_of(rule.purposes, said.purpose);
}

bool covers(const Rule& rule, Sensitivity sensitivity) {
    if (rule.at_most && sensitivity > *rule.at_most) return false;
    if (rule.at_least && sensitivity < *rule.at_least) return false;
    return rule.classes.empty() ||
           std::find(rule.classes.begin(), rule.classes.end(), sensitivity) != rule.classes.end();
}

domain::Residency places_of(const Rule& rule) {
    if (rule.jurisdictions.empty()) return {};
    return domain::Residency({rule.jurisdictions.begin(), rule.jurisdictions.end()});
}

Error nothing_left(const std::string& rule, const domain::Residency& residency) {
    if (residency.nowhere()) {
        return Error(ErrorCode::denied,
                     fmt::format("rule {}: the residency constraints on this content exclude each "
                                 "other, so no place is left",
                                 rule))
            .reason("residency_empty")
            .italian(fmt::format("regola {}: i vincoli di residenza di questo contenuto si "
                                 "escludono, non resta alcun luogo",
                                 rule));
    }
    return Error(ErrorCode::denied,
                 fmt::format("rule {} leaves no tier for this content with this key", rule))
        .reason("no_tier_permitted")
        .italian(fmt::format(
            "la regola {} non lascia alcun livello per questo contenuto con questa chiave", rule));
}

}  // namespace

PolicyEngine::PolicyEngine(Options options) : options_(std::move(options)) {}

/// What the redacted form of content of this class counts as, under the rules that hold.
Sensitivity PolicyEngine::redacted_class(const domain::AnnotatedRequest& annotated) const {
    const Sensitivity whole = annotated.label.sensitivity;
    if (whole != Sensitivity::private_) return whole;
    const bool lowered =
        std::any_of(options_.rules.begin(), options_.rules.end(), [&](const Rule& rule) {
            return rule.redacted_counts_as == Sensitivity::standard &&
                   concerns(rule, annotated, false) && covers(rule, whole);
        });
    return lowered ? Sensitivity::standard : whole;
}

/// Opens T3 to the redacted form where a rule permits it and nothing speaks against it. Gives the
/// rule that did.
std::string PolicyEngine::open_t3(const domain::AnnotatedRequest& annotated, TierSet left,
                                  Permit& permit) const {
    const Sensitivity whole = annotated.label.sensitivity;
    const Sensitivity redacted = redacted_class(annotated);
    if (redacted == Sensitivity::secret) {
        permit.closed_ = T3Closed::secret;
        return {};
    }
    std::string by;
    for (const Rule& rule : options_.rules) {
        const bool covered = covers(rule, redacted) || covers(rule, whole);
        if (!rule.permit_t3 || !covered || !concerns(rule, annotated, false)) continue;
        permit.openings_.push_back(places_of(rule));
        by = rule.name;
    }
    permit.closed_ = T3Closed::open;
    if (redacted == Sensitivity::private_) permit.closed_ = T3Closed::private_;
    if (permit.openings_.empty() && permit.closed_ == T3Closed::open)
        permit.closed_ = T3Closed::no_permit;
    if (permit.closed_ == T3Closed::open && !left.contains(Tier::t3))
        permit.closed_ = T3Closed::kept;
    if (permit.closed_ == T3Closed::open) permit.closed_ = Redactor::obstacle(annotated);
    if (permit.closed_ != T3Closed::open) permit.openings_.clear();
    return permit.openings_.empty() ? std::string() : by;
}

Result<Permit> PolicyEngine::decide(const domain::AnnotatedRequest& annotated) const {
    const domain::Label& label = annotated.label;
    TierSet left = every_tier;  // of what the class or a permit opens
    Permit permit(domain::tiers_of(label.sensitivity), label.residency,
                  fmt::format("class-{}", to_string(label.sensitivity)));
    std::string decided;
    for (const Rule& rule : options_.rules) {
        if (!rule.tiers && !rule.residency) continue;
        if (!covers(rule, label.sensitivity) || !concerns(rule, annotated, true)) continue;
        if (rule.tiers && rule.jurisdictions.empty()) left = left & *rule.tiers;
        if (rule.tiers && !rule.jurisdictions.empty())
            permit.restrictions_.push_back({places_of(rule), *rule.tiers, rule.name});
        if (rule.residency) permit.residency_ = permit.residency_.intersect(*rule.residency);
        decided = rule.name;
    }
    const TierSet of_key = annotated.request.caller.tiers;
    const std::string opened = open_t3(annotated, left & of_key, permit);
    if (!opened.empty() && opened != decided)
        decided = decided.empty() ? opened : fmt::format("{}+{}", decided, opened);
    if (!decided.empty()) permit.rule_ = std::move(decided);
    const TierSet by_rules = permit.tiers_ & left;
    permit.tiers_ = by_rules & of_key;
    if (permit.tiers_ != by_rules) permit.rule_ += "+key-" + annotated.request.caller.key_id;
    if (permit.tiers().empty() || permit.residency_.nowhere())
        return fail(nothing_left(permit.rule_, permit.residency_));
    return permit;
}

Result<ClearedRequest> PolicyEngine::clear(domain::AnnotatedRequest annotated) const {
    TRY(Permit permit, decide(annotated));
    return ClearedRequest(std::move(annotated), std::move(permit));
}

bool PolicyEngine::permits_t3() const noexcept {
    return std::any_of(options_.rules.begin(), options_.rules.end(),
                       [](const Rule& rule) { return rule.permit_t3; });
}

Result<Permit> PolicyEngine::clear_artifact(const ArtifactLabel& artifact) const {
    // No content of a member is in it, so its class alone decides; T3 is open to public artifacts
    // such as downloads.
    TierSet tiers = domain::tiers_of(artifact.label.sensitivity);
    if (artifact.label.sensitivity == domain::Sensitivity::public_)
        tiers = tiers | TierSet{Tier::t3};
    if (artifact.label.residency.nowhere())
        return fail(nothing_left("artifact-" + artifact.purpose, artifact.label.residency));
    return Permit(tiers, artifact.label.residency, "artifact-" + artifact.purpose);
}

}  // namespace molly::policy
