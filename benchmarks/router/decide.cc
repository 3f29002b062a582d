// What a decision costs: 1,000 candidate (target, adapter) pairs, each with evidence of its own,
// for requests of one and of several domains. Processor time of one thread; the roster is made
// once, and what is live of its targets beforehand. Last, with all that the pipeline looks up
// before it decides.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "adapters/registry.h"
#include "base/coroutine.h"
#include "pipeline/presence.h"
#include "policy/policy_engine.h"
#include "router/router.h"
#include "targets/target.h"
#include "world/clock.h"
#include "world/network.h"

namespace {

using namespace molly;

constexpr std::size_t adapters_each = 19;  // and the bare model
constexpr std::size_t rounds = 2000;

class StillClock final : public Clock {
public:
    MonoTime now() const noexcept override { return {}; }
    WallTime wall() const noexcept override { return WallTime(std::chrono::hours(500'000)); }
    Task<void> sleep_until(MonoTime /*when*/) override { co_return; }
};

double thread_microseconds() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}

router::TargetView target_of(std::size_t number) {
    auto spec = std::make_shared<domain::TargetSpec>();
    spec->id = fmt::format("target-{}", number);
    spec->tier = number % 2 == 0 ? domain::Tier::t0 : domain::Tier::t1;
    spec->quality = 0.3 + static_cast<double>(number % 10) * 0.05;
    spec->prices.per_answer_token.nano = static_cast<std::int64_t>(number * 10);
    router::TargetView view;
    for (std::size_t i = 0; i < adapters_each; ++i) {
        domain::Specialist one;
        one.adapter = fmt::format("adapter-{:02}", i);
        one.field = static_cast<domain::Field>((number + i) % domain::fields_count);
        one.threshold = 0.95;
        view.adapters.push_back(one.adapter);
        spec->specialists.push_back(std::move(one));
    }
    view.spec = std::move(spec);
    return view;
}

void fill(router::Estimates& estimates, const std::vector<router::TargetView>& targets) {
    for (const router::TargetView& view : targets) {
        std::vector<std::string> names = view.adapters;
        names.emplace_back();
        for (std::size_t cell = 0; cell < names.size() * domain::fields_count; ++cell) {
            std::ignore = estimates.learn(router::EstimateRow{
                .target = view.spec->id,
                .adapter = names[cell / domain::fields_count],
                .field = static_cast<domain::Field>(cell % domain::fields_count),
                .band = domain::Band::middling,
                .mean = static_cast<double>(cell % 7) / 7,
                .weight = 20,
                .updated = {}});
        }
    }
}

policy::ClearedRequest request_of(std::size_t fields) {
    domain::AnnotatedRequest asked;
    asked.request.caller.key_id = "k";
    asked.capability.prompt_tokens = asked.capability.context_tokens = 300;
    asked.capability.answer_tokens = 200;
    asked.capability.classified = true;
    for (std::size_t i = 0; i < fields; ++i)
        asked.capability.fields[2 * i] = 1.0F / static_cast<float>(fields);
    return *policy::PolicyEngine({}).clear(std::move(asked));
}

/// The middle of many decisions, in microseconds.
double measure(const policy::ClearedRequest& cleared, const router::Roster& roster,
               const router::Moment& moment) {
    std::vector<double> times;
    const router::Options options;
    for (std::size_t round = 0; round < rounds; ++round) {
        domain::Decision decision;
        const double begin = thread_microseconds();
        const auto made = router::plan(cleared, {}, roster, moment, options, decision);
        times.push_back(thread_microseconds() - begin);
        if (!made) return -1;
    }
    std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
    return times[rounds / 2];
}

/// The first decision after something was learned, in microseconds: beliefs are worked out again.
double measure_after_learning(const policy::ClearedRequest& cleared, const router::Roster& roster,
                              const router::Moment& moment, router::Estimates& estimates) {
    std::vector<double> times;
    const router::Options options;
    for (std::size_t round = 0; round < rounds / 10; ++round) {
        domain::Decision decision;
        std::ignore = estimates.learn("target-0", "", cleared.annotated().capability, 0.5, 1);
        const double begin = thread_microseconds();
        const auto made = router::plan(cleared, {}, roster, moment, options, decision);
        times.push_back(thread_microseconds() - begin);
        if (!made) return -1;
    }
    std::nth_element(times.begin(), times.begin() + rounds / 20, times.end());
    return times[rounds / 20];
}

/// A registry of so many adapters, as if they had been imported.
std::unique_ptr<adapters::Registry> registry_of(const std::filesystem::path& folder,
                                                std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        adapters::Manifest manifest;
        manifest.name = fmt::format("adapter-{:03}", i);
        manifest.version = "1.0.0";
        manifest.hash = std::string(64, '0');
        manifest.label.origins = {fmt::format("corpus:{}", i)};
        const std::filesystem::path names = folder / "adapters/names" / manifest.name;
        std::filesystem::create_directories(names);
        std::ofstream(names / "1.0.0.json") << adapters::to_text(manifest);
        std::ofstream(names / "history") << "1.0.0\n";
    }
    auto registry = adapters::Registry::open(folder);
    return registry ? *std::move(registry) : nullptr;
}

/// A decision as the pipeline makes it, in microseconds: how the targets are, which of 999 declared
/// adapters are in the registry, what their labels permit, and the plan.
double measure_all(const std::filesystem::path& folder) {
    constexpr std::size_t adapters_count = 999;
    const auto registry = registry_of(folder, adapters_count);
    auto spec = std::make_shared<domain::TargetSpec>();
    spec->id = "home";
    spec->local = true;
    spec->tier = domain::Tier::t0;
    for (std::size_t i = 0; i < adapters_count; ++i) {
        domain::Specialist one;
        one.adapter = fmt::format("adapter-{:03}", i);
        one.field = static_cast<domain::Field>(i % domain::fields_count);
        one.threshold = 0.95;
        spec->specialists.push_back(std::move(one));
    }
    world::SimulatedClock clock;
    world::Engine engine(clock);
    const auto home = targets::make_local_target(spec, engine, registry.get());
    router::Estimates estimates({}, clock);
    const router::Roster roster({home->shared_spec()}, &estimates);
    const pipeline::Presence presence({home.get()}, roster);
    const router::Options options;
    const router::Health health(options, clock);
    const policy::PolicyEngine policy({});
    const auto cleared = request_of(1);
    std::vector<double> times;
    for (std::size_t round = 0; round < rounds; ++round) {
        domain::Decision decision;
        const double begin = thread_microseconds();
        router::Moment moment;
        moment.targets.resize(1);
        moment.targets[0].queue_depth = home->queue_depth();
        health.look(roster.targets(), moment.targets);
        presence.look(cleared, policy, moment);
        const auto made = router::plan(cleared, {}, roster, moment, options, decision);
        times.push_back(thread_microseconds() - begin);
        if (!made || moment.pairs.back() != router::Moment::Serving::yes) return -1;
    }
    std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
    return times[rounds / 2];
}

}  // namespace

int main() {
    StillClock clock;
    for (const std::size_t count : {std::size_t{1}, std::size_t{50}, std::size_t{1000}}) {
        // 20 pairs, 1,000 pairs, and 1,000 targets with nothing but their bare model.
        std::vector<router::TargetView> targets;
        for (std::size_t i = 0; i < count; ++i) {
            targets.push_back(target_of(i));
            if (count < 1000) continue;
            auto bare = std::make_shared<domain::TargetSpec>(*targets.back().spec);
            bare->specialists.clear();
            targets.back().spec = std::move(bare);
            targets.back().adapters.clear();
        }
        router::Estimates estimates({}, clock);
        fill(estimates, targets);
        std::vector<std::shared_ptr<const domain::TargetSpec>> specs;
        for (const router::TargetView& view : targets)
            specs.push_back(view.spec);
        const router::Roster roster(std::move(specs), &estimates);
        router::Moment moment;
        moment.targets.resize(roster.targets().size());
        moment.pairs.resize(roster.pairs().size(), router::Moment::Serving::yes);
        const double one = measure(request_of(1), roster, moment);
        const double three = measure(request_of(3), roster, moment);
        const double learned = measure_after_learning(request_of(1), roster, moment, estimates);
        fmt::print(
            "{{\"targets\":{},\"pairs\":{},\"decision_us\":{:.1f},"
            "\"decision_us_three_domains\":{:.1f},\"decision_us_after_learning\":{:.1f}}}\n",
            count, roster.pairs().size(), one, three, learned);
    }
    const auto folder =
        std::filesystem::temp_directory_path() / fmt::format("molly-decide-{}", getpid());
    fmt::print("{{\"targets\":1,\"pairs\":1000,\"decision_all_included_us\":{:.1f}}}\n",
               measure_all(folder));
    std::filesystem::remove_all(folder);
    return 0;
}
