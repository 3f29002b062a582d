#pragma once
// One random world before anything happens in it: places, keys, rules, requests. The same seed
// makes the same world.
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "annotate/annotate.h"
#include "members/members.h"
#include "policy/policy_engine.h"
#include "random.h"
#include "router/router.h"

namespace molly::simulation {

using Places = std::set<std::string, std::less<>>;

/// A target as it is declared, and the tier that it is in truth.
struct Place {
    domain::TargetSpec spec;
    domain::Tier truth = domain::Tier::t0;
    std::uint32_t faults_percent = 0;
};

struct KeyOfWorld {
    std::string text;
    members::Scope scope;
};

/// One request: its bytes, and what they mean to somebody who knows how they were made.
struct Ask {
    std::string name;  ///< sent as User-Agent
    std::size_t key = 0;
    std::string canary;
    std::string path;
    std::string body;
    std::optional<domain::Sensitivity> declared;
    std::optional<Places> residency;
    std::vector<std::string> tags;
    std::string conversation;
    std::set<std::size_t> phrases;  ///< label rules whose phrase is somewhere in it
    /// What detectors should find in it: no third party may get one of these.
    std::vector<std::string> identifiers;
    bool stream = false;
    Duration start{0};
    std::optional<Duration> leaves_after;
};

struct Setup {
    std::vector<Place> places;
    std::vector<KeyOfWorld> keys;
    annotate::Options labels;
    policy::Options policy;
    router::Options routing;
    std::vector<Ask> asks;
    std::uint32_t store_refuses_percent = 0;
};

Setup make_setup(Random& random);

}  // namespace molly::simulation
