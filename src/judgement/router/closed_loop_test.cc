// The loop closed: decisions change what is seen, and what is seen changes decisions.
// MOLLY_WORLDS=1000000 plays as many random worlds (tools/check deep does).
#include <algorithm>
#include <cstdlib>

#include <gtest/gtest.h>

#include "router/internal/played_world.h"

namespace molly::router::played {
namespace {

using domain::Field;
using domain::Sensitivity;
using domain::Tier;

/// Requests until `wanted` is first choice for ten in a row; the limit when it never is.
int requests_until(World& world, const std::string& wanted, const domain::AnnotatedRequest& asked,
                   int limit, double judged = 1) {
    int in_a_row = 0;
    for (int i = 1; i <= limit; ++i) {
        const Outcome outcome = world.ask(asked, judged);
        EXPECT_EQ(outcome.fault, "");
        in_a_row = outcome.first == wanted ? in_a_row + 1 : 0;
        if (in_a_row == 10) return i - 9;
    }
    return limit;
}

class ClosedLoopTest : public ::testing::Test {
protected:
    /// Two of one tier, nearly alike.
    static void add_two_offices(World& world) {
        world.add("a", Tier::t1, 0.72, {.quality = 0.72});
        world.add("b", Tier::t1, 0.7, {.quality = 0.7});
    }
};

TEST_F(ClosedLoopTest, ASlowTargetLosesWithinAHandfulOfRequests) {
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        World world(seed);
        add_two_offices(world);
        const auto asked = request_about(Field::science);
        // Nobody judges here: latency alone decides.
        for (int i = 0; i < 30; ++i)
            world.ask(asked, 0);
        world.targets[0].truth.first_token_ms = 6000;
        world.targets[0].truth.token_ms = 100;
        int asked_slow = 0;
        for (int i = 0; i < 40; ++i)
            asked_slow += world.ask(asked, 0).first == "a" ? 1 : 0;
        EXPECT_LE(asked_slow, 3) << seed;
    }
}

TEST_F(ClosedLoopTest, ATargetThatFailsIsLeftAfterThreeRequestsAndComesBack) {
    World world(7);
    add_two_offices(world);
    const auto asked = request_about(Field::science);
    for (int i = 0; i < 10; ++i)
        world.ask(asked, 0);
    world.targets[0].truth.fails = 1;
    int tried = 0;
    for (int i = 0; i < 5; ++i) {
        const Outcome outcome = world.ask(asked, 0);
        tried += outcome.first == "a" ? 1 : 0;
        EXPECT_EQ(outcome.answered, "b");  // nobody waits for the breaker
    }
    EXPECT_EQ(tried, 3);
    world.targets[0].truth.fails = 0;
    world.clock.advance(world.options.open_for);
    EXPECT_LE(requests_until(world, "a", asked, 200, 0), 2);
}

TEST_F(ClosedLoopTest, AWorseningTargetLosesWithinItsMemory) {
    int worst = 0;
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        World world(seed);
        world.add("a", Tier::t1, 0.8, {.quality = 0.95});
        world.add("b", Tier::t1, 0.6, {.quality = 0.6});
        const auto asked = request_about(Field::medicine);
        for (int i = 0; i < 60; ++i)
            world.ask(asked);
        world.targets[0].truth.quality = 0.1;
        worst = std::max(worst, requests_until(world, "b", asked, 400));
    }
    EXPECT_LE(worst, 200);  // the weight of evidence beyond which newer judgements push out older
    RecordProperty("requests", worst);
}

TEST_F(ClosedLoopTest, AnEvaluatedSpecialistIsAskedAtOnce) {
    World world(3);
    world.add("office", Tier::t1, 0.7, {.quality = 0.7});
    PlayedTarget& home = world.add("home", Tier::t0, 0.3, {.quality = 0.3});
    home.spec->specialists.push_back(
        {.adapter = "law", .field = Field::humanities, .quality = 0.4, .threshold = 0.6});
    home.adapters = {0.9};
    const auto asked = request_about(Field::humanities);
    for (int i = 0; i < 20; ++i)
        EXPECT_EQ(world.ask(asked).first, "office");
    // Its new version starts with its evaluation's mean and count.
    std::ignore = world.estimates.learn(EstimateRow{.target = "home",
                                                    .adapter = "law",
                                                    .field = Field::humanities,
                                                    .band = domain::Band::easy,
                                                    .mean = 0.9,
                                                    .weight = 60,
                                                    .updated = {}});
    EXPECT_EQ(requests_until(world, "home/law", asked, 100), 1);
    // And nothing changed for what it was not evaluated in.
    EXPECT_EQ(world.ask(request_about(Field::science)).first, "office");
}

TEST_F(ClosedLoopTest, ASettledLoopDoesNotSwing) {
    int most = 0;
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
        World world(seed);
        world.add("a", Tier::t1, 0.6, {.first_token_ms = 250, .quality = 0.8});
        world.add("b", Tier::t1, 0.6, {.first_token_ms = 200, .quality = 0.65});
        world.add("c", Tier::t1, 0.5, {.first_token_ms = 150, .quality = 0.5});
        const auto asked = request_about(Field::finance);
        std::string before;
        for (int i = 0; i < 100; ++i)
            before = world.ask(asked).first;
        int turns = 0;
        for (int i = 0; i < 300; ++i) {
            const std::string now = world.ask(asked).first;
            turns += now == before ? 0 : 1;
            before = now;
        }
        most = std::max(most, turns);
    }
    EXPECT_LE(most, 30);  // of 300 decisions, in the worst of a hundred worlds
    RecordProperty("turns", most);
}

Tier tier_of(std::size_t i) {
    return static_cast<Tier>(i);
}

void furnish(World& world) {
    Chance& chance = world.chance;
    const std::size_t count = 1 + chance.below(6);
    for (std::size_t i = 0; i < count; ++i) {
        Truth truth{.first_token_ms = 50 + 2000 * chance.share(),
                    .token_ms = 2 + 60 * chance.share(),
                    .fails = chance.happens(0.3) ? chance.share() : 0,
                    .quality = chance.share()};
        PlayedTarget& target =
            world.add("t" + std::to_string(i), tier_of(chance.below(4)), chance.share(), truth);
        domain::TargetSpec& spec = *target.spec;
        if (chance.happens(0.5))
            spec.prices.per_answer_token.nano = static_cast<std::int64_t>(chance.below(200'000));
        if (chance.happens(0.6)) spec.jurisdiction = chance.happens(0.5) ? "IT" : "US";
        spec.capabilities.context_tokens_max = chance.happens(0.2) ? 150 : 8192;
        spec.capabilities.tools = chance.happens(0.5);
        while (spec.tier == Tier::t0 && spec.specialists.size() < 3 && chance.happens(0.5)) {
            domain::Specialist one;
            one.adapter = "x" + std::to_string(spec.specialists.size());
            one.field = static_cast<Field>(chance.below(3));
            one.quality = chance.share();
            one.threshold = chance.share();
            one.difficulty_max = chance.happens(0.5) ? 1 : chance.share();
            target.adapters.push_back(chance.share());
            spec.specialists.push_back(std::move(one));
        }
    }
    world.options.attempts_max = static_cast<std::uint32_t>(1 + chance.below(5));
    if (chance.happens(0.5)) {
        policy::Rule rule;
        rule.name = "out";
        rule.permit_t3 = true;
        world.rules.rules.push_back(std::move(rule));
    }
}

domain::AnnotatedRequest anything(Chance& chance) {
    auto asked =
        request_about(static_cast<Field>(chance.below(3)), static_cast<float>(chance.share()));
    if (chance.happens(0.3)) {  // of two domains
        asked.capability.fields[chance.below(3)] += 1;
        float sum = 0;
        for (const float share : asked.capability.fields)
            sum += share;
        for (float& share : asked.capability.fields)
            share /= sum;
    }
    asked.label.sensitivity = static_cast<Sensitivity>(chance.below(4));
    asked.detection_complete = chance.happens(0.8);
    if (chance.happens(0.2)) asked.label.residency = domain::Residency({"IT"});
    if (chance.happens(0.3)) {
        asked.request.extensions.cost_max =
            domain::Money{static_cast<std::int64_t>(chance.below(10'000'000))};
    }
    if (chance.happens(0.3)) {
        asked.request.extensions.latency_max = std::chrono::milliseconds(chance.below(6000));
    }
    if (chance.happens(0.2)) asked.request.caller.tiers = {Tier::t0, Tier::t2};
    asked.capability.tools = chance.happens(0.2);
    asked.request.extensions.mode = static_cast<domain::Mode>(chance.below(4));
    return asked;
}

/// A target gets better, worse, dear, or dies.
void turn(World& world) {
    Chance& chance = world.chance;
    PlayedTarget& target = world.targets[chance.below(world.targets.size())];
    target.truth.fails = chance.happens(0.5) ? 0 : chance.share();
    target.truth.quality = chance.share();
    target.truth.first_token_ms = 50 + 5000 * chance.share();
    world.clock.advance(std::chrono::seconds(chance.below(30)));
}

TEST_F(ClosedLoopTest, NoPromiseIsEverBroken) {
    const char* wanted = std::getenv("MOLLY_WORLDS");
    const std::uint64_t worlds = wanted == nullptr ? 2000 : std::strtoull(wanted, nullptr, 10);
    std::uint64_t asked = 0;
    std::uint64_t answered = 0;
    for (std::uint64_t seed = 1; seed <= worlds; ++seed) {
        World world(seed);
        furnish(world);
        for (int i = 0; i < 20; ++i) {
            const Outcome outcome = world.ask(anything(world.chance), 0.5);
            ASSERT_EQ(outcome.fault, "") << "world " << seed << ", request " << i;
            ++asked;
            answered += outcome.answered.empty() ? 0 : 1;
            if (world.chance.happens(0.1)) turn(world);
        }
    }
    // A world in which nobody answers proves nothing.
    EXPECT_GT(answered, asked / 4);
}

}  // namespace
}  // namespace molly::router::played
