#pragma once
// Plays a scenario on the real annotator, policy, router, targets and pipeline; only the outside
// world, the store and the keys are in memory.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/pipeline.h"
#include "scenario.h"
#include "world/clock.h"
#include "world/members.h"
#include "world/network.h"
#include "world/store.h"

namespace molly::scenarios {

/// What one request came to.
struct Played {
    domain::Trace trace;
    std::optional<Error> error;
    std::vector<std::string> sent_to;   ///< targets whose endpoint got bytes
    std::vector<std::string> departed;  ///< targets of committed departures
    std::string bytes;                  ///< all that endpoints got
    std::string answer;                 ///< as the caller reads it
};

class Stage {
public:
    /// Errors: invalid_request (a pattern).
    static Result<std::unique_ptr<Stage>> make(const Scenario& scenario);

    Played ask(domain::Request request);
    void wait(std::chrono::milliseconds time) { clock_.skip(time); }
    void turn(const std::string& target, world::Behaviour behaviour);

private:
    explicit Stage(const Scenario& scenario);

    world::SimulatedClock clock_;
    world::MemoryStore store_{clock_};
    world::OpenMembers members_;
    world::Network network_{clock_};
    world::Engine engine_{clock_};
    Metrics metrics_;
    policy::PolicyEngine policy_;
    router::Options routing_;
    router::Health health_;
    std::map<std::string, world::Behaviour> behaviours_;
    std::unique_ptr<annotate::Annotator> annotator_;
    std::vector<std::unique_ptr<targets::Target>> targets_;
    std::unique_ptr<pipeline::Pipeline> pipeline_;
    int asked_ = 0;
};

/// What differs from the expectation, a sentence each; empty when all is as expected.
std::vector<std::string> differences(const std::vector<Line>& expected, const Played& played);

}  // namespace molly::scenarios
