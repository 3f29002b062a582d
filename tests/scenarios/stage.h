#pragma once
// Plays a scenario on the real annotator, policy, router, targets and pipeline; only the outside
// world, the store and the keys are in memory.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "pipeline/pipeline.h"
#include "scenarios/rehearsal.h"
#include "world/clock.h"
#include "world/members.h"
#include "world/network.h"
#include "world/store.h"

namespace molly::scenarios {

class Stage {
public:
    /// Errors: invalid_request (a pattern).
    static Result<std::unique_ptr<Stage>> make(const Scenario& scenario);

    Played ask(domain::Request request);
    void wait(std::chrono::milliseconds time) { clock_.skip(time); }
    void turn(const std::string& target, const Manner& manner);

private:
    explicit Stage(const Scenario& scenario);

    boost::asio::io_context io_;  // what outlasts a request sleeps on it
    world::SimulatedClock clock_;
    world::MemoryStore store_{clock_};
    world::OpenMembers members_;
    world::Network network_{clock_};
    std::vector<std::unique_ptr<world::Engine>> engines_;  // one for each target of this device
    Metrics metrics_;
    policy::PolicyEngine policy_;
    router::Options routing_;
    router::Health health_;
    router::Estimates estimates_{{}, clock_};
    router::Confidences confidences_{{}, clock_};
    struct Playing {
        world::Behaviour behaviour = world::Behaviour::answers;
        std::chrono::milliseconds takes{0};
        double sureness = 1;
        std::vector<std::string> says;
        std::size_t said = 0;
    };
    std::string words_of(const std::string& target, std::string otherwise);
    world::Engine& engine_of(const std::string& target);
    std::map<std::string, Playing> playing_;
    std::unique_ptr<annotate::Annotator> annotator_;
    std::vector<std::unique_ptr<targets::Target>> targets_;
    std::unique_ptr<pipeline::Pipeline> pipeline_;
    int asked_ = 0;
};

}  // namespace molly::scenarios
