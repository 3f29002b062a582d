#pragma once
// Candidates while they are weighed: numbers only. Words are made for the few that are told of.
#include <string>
#include <string_view>
#include <vector>

#include "router/router.h"

namespace molly::router {

/// How far a candidate came; when none is left, the furthest one's obstacle is the error. In the
/// order in which obstacles are looked for.
enum class Stage : std::uint8_t {
    other_asked,
    permit,
    adapter,
    capability,
    context,
    cost,
    latency,
    health,
    admitted
};

struct Weighed {
    const TargetView* view = nullptr;
    std::string_view adapter;
    const domain::Specialist* declared = nullptr;  ///< under which it serves this request
    Belief belief;
    domain::Money cost;
    std::chrono::milliseconds latency{0};
    double score = 0;
    Stage stage = Stage::admitted;
    bool specialist = false;  ///< it is tried before others
    std::uint8_t rank = 0;    ///< before the score counts
};

/// The refusal when nobody is left. `words` are those of the candidates that came furthest.
Error nothing_left(const policy::ClearedRequest& cleared, const std::vector<Weighed>& weighed,
                   Stage furthest, const std::string& words);

}  // namespace molly::router
