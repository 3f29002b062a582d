#include "oracle.h"

#include <algorithm>

namespace molly::simulation {
namespace {

int number(domain::Sensitivity sensitivity) {
    return static_cast<int>(sensitivity);
}
int number(domain::Tier tier) {
    return static_cast<int>(tier);
}

/// Of the places of these worlds, Italy and Germany lie in the Union.
bool lies_in(const std::string& place, const Places& allowed) {
    const bool in_union = place == "IT" || place == "DE";
    return allowed.contains(place) || (in_union && allowed.contains("EU"));
}

Places both(const Places& a, const Places& b) {
    Places common;
    for (const std::string& place : a) {
        if (lies_in(place, b)) common.insert(place);
    }
    for (const std::string& place : b) {
        if (lies_in(place, a)) common.insert(place);
    }
    return common;
}

void constrain(Bound& bound, const Places& places) {
    bound.places = bound.constrained ? both(bound.places, places) : places;
    bound.constrained = true;
}

bool tagged(const std::vector<std::string>& wanted, const std::vector<std::string>& tags) {
    if (wanted.empty()) return true;
    for (const std::string& tag : tags) {
        if (std::find(wanted.begin(), wanted.end(), tag) != wanted.end()) return true;
    }
    return false;
}

std::set<int> tiers_for(int sensitivity) {
    if (sensitivity == 3) return {0};
    if (sensitivity == 2) return {0, 1};
    return {0, 1, 2};
}

void keep(std::set<int>& tiers, domain::TierSet allowed) {
    for (const domain::Tier tier : domain::all_tiers) {
        if (!allowed.contains(tier)) tiers.erase(number(tier));
    }
}

}  // namespace

Bound join_labels(const Bound& a, const Bound& b) {
    Bound joined = a;
    joined.sensitivity = std::max(a.sensitivity, b.sensitivity);
    if (b.constrained) constrain(joined, b.places);
    return joined;
}

Bound label_of(const Setup& setup, const Ask& ask) {
    const members::Scope& scope = setup.keys[ask.key].scope;
    Bound bound;
    if (ask.declared) {
        bound.must_refuse = number(*ask.declared) < number(scope.lowest_class);
        bound.sensitivity = number(*ask.declared);
    } else if (scope.default_class) {
        bound.sensitivity = number(*scope.default_class);
    }
    if (ask.residency) constrain(bound, *ask.residency);
    for (const std::size_t index : ask.phrases) {
        const annotate::LabelRule& rule = setup.labels.rules[index];
        const bool member = rule.members.empty() || rule.members.front() == scope.member;
        if (!member || !tagged(rule.tags, ask.tags)) continue;
        if (rule.sensitivity)
            bound.sensitivity = std::max(bound.sensitivity, number(*rule.sensitivity));
        if (rule.residency) constrain(bound, rule.residency->places());
    }
    return bound;
}

Bound permit_of(const Setup& setup, const Ask& ask, Bound bound) {
    bound.tiers = tiers_for(bound.sensitivity);
    keep(bound.tiers, setup.keys[ask.key].scope.tiers);
    for (const policy::Rule& rule : setup.policy.rules) {
        // A rule for some classes may not hold for the true label, which may be higher.
        if (rule.at_most || rule.at_least || !tagged(rule.tags, ask.tags)) continue;
        if (rule.tiers) keep(bound.tiers, *rule.tiers);
        if (rule.residency) constrain(bound, rule.residency->places());
    }
    return bound;
}

bool may_be_at(const Bound& bound, const Place& place) {
    if (bound.must_refuse || !bound.tiers.contains(number(place.truth))) return false;
    if (!bound.constrained) return true;
    const domain::TargetSpec& spec = place.spec;
    if (!spec.jurisdiction.empty() && lies_in(spec.jurisdiction, bound.places)) return true;
    return std::any_of(spec.boundaries.begin(), spec.boundaries.end(),
                       [&](const std::string& name) { return lies_in(name, bound.places); });
}

}  // namespace molly::simulation
