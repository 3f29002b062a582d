#include "policy/policy_engine.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace molly::policy {
namespace {

using domain::Tier;
using domain::TierSet;

bool one_of(const std::vector<std::string>& wanted, const std::string& value) {
    return wanted.empty() || std::find(wanted.begin(), wanted.end(), value) != wanted.end();
}

bool any_of(const std::vector<std::string>& wanted, const std::vector<std::string>& values) {
    return wanted.empty() ||
           std::any_of(values.begin(), values.end(),
                       [&](const std::string& value) { return one_of(wanted, value); });
}

bool applies(const Rule& rule, const domain::AnnotatedRequest& annotated) {
    const domain::Request& request = annotated.request;
    if (rule.at_most && annotated.label.sensitivity > *rule.at_most) return false;
    if (rule.at_least && annotated.label.sensitivity < *rule.at_least) return false;
    return one_of(rule.members, request.caller.member) && one_of(rule.apps, request.caller.app) &&
           any_of(rule.tags, request.extensions.tags) &&
           one_of(rule.purposes, request.extensions.purpose);
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

Result<Permit> PolicyEngine::decide(const domain::AnnotatedRequest& annotated) const {
    const domain::Label& label = annotated.label;
    TierSet tiers = domain::tiers_of(label.sensitivity);
    domain::Residency residency = label.residency;
    std::string decided = fmt::format("class-{}", to_string(label.sensitivity));
    for (const Rule& rule : options_.rules) {
        if (!applies(rule, annotated)) continue;
        // A T3 permit opens nothing yet: T3 takes redacted payloads only, and this build has no
        // redactor to make one.
        if (!rule.tiers && !rule.residency) continue;
        if (rule.tiers) tiers = tiers & *rule.tiers;
        if (rule.residency) residency = residency.intersect(*rule.residency);
        decided = rule.name;
    }
    const TierSet of_key = annotated.request.caller.tiers;
    if ((tiers & of_key) != tiers) {
        tiers = tiers & of_key;
        decided += "+key-" + annotated.request.caller.key_id;
    }
    if (tiers.empty() || residency.nowhere()) return fail(nothing_left(decided, residency));
    return Permit(tiers, std::move(residency), std::move(decided));
}

Result<ClearedRequest> PolicyEngine::clear(domain::AnnotatedRequest annotated) const {
    TRY(Permit permit, decide(annotated));
    return ClearedRequest(std::move(annotated), std::move(permit));
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
