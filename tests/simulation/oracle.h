#pragma once
// What must be true of a request's placement, worked out from how it was made and from SPEC section
// 1 alone: none of the product's own label, policy or router code is used.
#include <map>
#include <set>
#include <string>
#include <vector>

#include "setup.h"

namespace molly::simulation {

/// The least that the label of a request must be, and so the most that it may reach.
struct Bound {
    bool must_refuse = false;  ///< declared below its key's lowest class
    int sensitivity = 2;       ///< 0 public to 3 secret
    bool constrained = false;
    Places places;        ///< where it may be, when constrained
    std::set<int> tiers;  ///< numbers of the tiers that it may reach; permit_of fills it
    /// Where third parties may get its redacted form, for each rule that permits it; an empty set
    /// means anywhere. permit_of fills it.
    std::vector<Places> outside;
};

/// The label of a request by itself.
Bound label_of(const Setup& setup, const Ask& ask);

/// What both labels ask for.
Bound join_labels(const Bound& a, const Bound& b);

/// Where a request with this label may go: its class, its key and the rules that surely hold.
Bound permit_of(const Setup& setup, const Ask& ask, Bound label);

/// Texts of the request that no third party may get, in lower case.
std::vector<std::string> unspeakable(const Setup& setup, const Ask& ask);

/// Whether content under `bound` may be at `place`, whose true tier counts.
bool may_be_at(const Bound& bound, const Place& place);

}  // namespace molly::simulation
