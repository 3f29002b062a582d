#pragma once
// Candidates while they are weighed: numbers only. Words are made for the few that are told of.
#include <cstdint>
#include <span>
#include <string>

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
    double score = 0;
    std::uint32_t pair = 0;  ///< of the roster
    Stage stage = Stage::admitted;
    bool specialist = false;  ///< it is tried before others
    std::uint8_t rank = 0;    ///< before the score counts
    std::uint8_t place = 0;   ///< in the mixture
    float weight = 0;         ///< in the mixture; 0: not in it
};

/// The refusal when nobody is left. `words` are those of the candidates that came furthest.
Error nothing_left(const policy::ClearedRequest& cleared, const Roster& roster,
                   const Moment& moment, std::span<const Weighed> weighed, Stage furthest,
                   const std::string& words);

/// As authorise, without words.
bool covers(const domain::Caller& caller, const domain::TargetSpec& target,
            std::string_view adapter) noexcept;

}  // namespace molly::router
