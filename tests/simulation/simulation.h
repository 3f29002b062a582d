#pragma once
// The whole gateway in one thread and in simulated time. A seed replays a world to the byte.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace molly::simulation {

/// Faults planted on purpose: each must be found.
struct Planted {
    bool wrong_tier = false;          ///< a place of somebody else is declared as the owner's
    bool forgets_departures = false;  ///< the store says committed and commits nothing
    bool loses_traces = false;        ///< the same for traces
    bool blind = false;               ///< detectors say that they have looked, and find nothing
};

struct Findings {
    std::vector<std::string> violations;
    std::map<std::string, std::uint64_t> tally;  ///< what happened, so that silence shows

    void add(const Findings& other);
};

/// Plays the world of `seed` to its end and looks for broken promises.
Findings simulate(std::uint64_t seed, const Planted& planted = {});

}  // namespace molly::simulation
