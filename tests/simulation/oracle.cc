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

bool is_in(const domain::TargetSpec& spec, const Places& places) {
    if (!spec.jurisdiction.empty() && lies_in(spec.jurisdiction, places)) return true;
    return std::any_of(spec.boundaries.begin(), spec.boundaries.end(),
                       [&](const std::string& name) { return lies_in(name, places); });
}

/// Whether a label rule is about this caller and these tags.
bool holds_for(const Setup& setup, const Ask& ask, std::size_t index) {
    const annotate::LabelRule& rule = setup.labels.rules[index];
    const std::string& member = setup.keys[ask.key].scope.member;
    return (rule.members.empty() || rule.members.front() == member) && tagged(rule.tags, ask.tags);
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
    if (!ask.identifiers.empty()) bound.sensitivity = std::max(bound.sensitivity, 2);
    if (ask.residency) constrain(bound, *ask.residency);
    for (const std::size_t index : ask.phrases) {
        const annotate::LabelRule& rule = setup.labels.rules[index];
        if (!holds_for(setup, ask, index)) continue;
        if (rule.sensitivity)
            bound.sensitivity = std::max(bound.sensitivity, number(*rule.sensitivity));
        if (rule.residency) constrain(bound, rule.residency->places());
    }
    return bound;
}

std::vector<std::string> unspeakable(const Setup& setup, const Ask& ask) {
    std::vector<std::string> texts;
    for (std::string identifier : ask.identifiers) {
        for (char& c : identifier)
            c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        texts.push_back(std::move(identifier));
    }
    for (const std::size_t index : ask.phrases) {
        if (holds_for(setup, ask, index)) texts.push_back("phrase" + std::to_string(index));
    }
    return texts;
}

/// Which third parties may get the redacted form of content of this class.
void open_outside(const Setup& setup, const Ask& ask, Bound& bound) {
    if (bound.sensitivity == 3 || !setup.keys[ask.key].scope.tiers.contains(domain::Tier::t3))
        return;
    const std::string name = setup.keys[ask.key].scope.member + "/" + ask.conversation;
    const auto holds = [&](const policy::Rule& rule) {
        return tagged(rule.tags, ask.tags) &&
               (rule.conversations.empty() || rule.conversations.front() == name);
    };
    bool lowered = bound.sensitivity < 2;
    for (const policy::Rule& rule : setup.policy.rules) {
        if (!holds(rule)) continue;
        lowered = lowered || rule.redacted_counts_as.has_value();
        const bool classes = rule.at_most || rule.at_least;
        const bool keeps = rule.tiers && !rule.tiers->contains(domain::Tier::t3);
        if (keeps && !classes && rule.jurisdictions.empty()) return;
    }
    if (!lowered) return;
    for (const policy::Rule& rule : setup.policy.rules) {
        if (rule.permit_t3 && holds(rule))
            bound.outside.emplace_back(rule.jurisdictions.begin(), rule.jurisdictions.end());
    }
}

Bound permit_of(const Setup& setup, const Ask& ask, Bound bound) {
    bound.tiers = tiers_for(bound.sensitivity);
    keep(bound.tiers, setup.keys[ask.key].scope.tiers);
    for (const policy::Rule& rule : setup.policy.rules) {
        // A rule for some classes may not hold for the true label, which may be higher.
        if (rule.at_most || rule.at_least || !tagged(rule.tags, ask.tags)) continue;
        // Nor does one for some targets or some conversations.
        if (!rule.conversations.empty()) continue;
        if (rule.tiers && rule.jurisdictions.empty()) keep(bound.tiers, *rule.tiers);
        if (rule.residency) constrain(bound, rule.residency->places());
    }
    open_outside(setup, ask, bound);
    return bound;
}

bool may_be_at(const Bound& bound, const Place& place) {
    if (bound.must_refuse) return false;
    const bool outside = place.truth == domain::Tier::t3;
    const bool permitted = outside
                               ? std::any_of(bound.outside.begin(), bound.outside.end(),
                                             [&](const Places& places) {
                                                 return places.empty() || is_in(place.spec, places);
                                             })
                               : bound.tiers.contains(number(place.truth));
    return permitted && (!bound.constrained || is_in(place.spec, bound.places));
}

}  // namespace molly::simulation
