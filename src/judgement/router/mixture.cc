// What may be of several domains, none of them likely, is asked of several specialists at once.
#include <algorithm>

#include "router/internal/planner.h"

namespace molly::router {

/// Whether a mixture is the answer to such a request at all: nobody was named, and there is a text
/// to compare. Calls of tools are not weighed against each other.
bool Planner::mixes() const noexcept {
    return options_.mixture_max > 1 && needs_.classified && spread_ && adapter_.empty() &&
           wanted_.target.empty() && !needs_.tools &&
           request_.operation != domain::Operation::embed;
}

/// The share of the request that is in fields that the pair was declared for and is good at.
Planner::Part Planner::part_of(const Weighed& one) const {
    const Roster::Pair& pair = pair_of(one);
    Part part;
    const bool prompted = !prompted_.empty() && prompted_[one.pair] != Prompted::nothing;
    if (pair.declared.empty() || prompted || spec_of(one).tier != domain::Tier::t0) return part;
    for (std::size_t i = 0; i < mix_.count; ++i) {
        const std::uint8_t which = pair.of_field[mix_.parts[i].field];
        if (which == Roster::nobody) continue;
        const double lower = beliefs_[i][one.pair].lower;
        if (beyond(pair.declared[which]) || lower < pair.declared[which].threshold) continue;
        part.weight += mix_.parts[i].share;
        part.quality += mix_.parts[i].share * lower;
    }
    if (part.weight > 0) part.quality /= part.weight;
    return part;
}

std::size_t Planner::mix(std::vector<Weighed>& all) const {
    struct Member {
        std::size_t at;
        Part part;
    };
    std::vector<Member> members;
    if (!mixes()) return 0;
    const bool alone = std::any_of(all.begin(), all.end(), [](const Weighed& one) {
        return one.stage == Stage::admitted && one.specialist;
    });
    if (alone) return 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (all[i].stage != Stage::admitted) continue;
        const Part part = part_of(all[i]);
        if (part.weight > 0) members.push_back({.at = i, .part = part});
    }
    const auto most = std::min<std::size_t>(
        {members.size(), options_.mixture_max, std::max(1U, options_.attempts_max)});
    std::partial_sort(members.begin(), members.begin() + static_cast<std::ptrdiff_t>(most),
                      members.end(), [&](const Member& a, const Member& b) {
                          const double left = a.part.weight * a.part.quality;
                          const double right = b.part.weight * b.part.quality;
                          if (left != right) return left > right;
                          return pair_of(all[a.at]).order < pair_of(all[b.at]).order;
                      });
    members.resize(most);
    double covered = 0;
    domain::Money cost;
    for (const Member& member : members) {
        covered += member.part.weight;
        cost += terms_of(all[member.at]).cost;
    }
    const auto& cost_max = request_.extensions.cost_max;
    const bool affordable = !cost_max || cost <= *cost_max;
    if (most < 2 || covered < options_.mixture_share_min || !affordable) return 0;
    for (std::size_t i = 0; i < most; ++i) {
        Weighed& one = all[members[i].at];
        one.weight = static_cast<float>(members[i].part.weight);
        one.rank = 0;
        one.place = static_cast<std::uint8_t>(i);
    }
    return most;
}

}  // namespace molly::router
