#include "simulation.h"

#include <gtest/gtest.h>

#include "base/log.h"

namespace molly::simulation {
namespace {

constexpr std::uint64_t worlds = 10'000;

Findings play(std::uint64_t count, const Planted& planted = {}) {
    Findings all;
    for (std::uint64_t seed = 1; seed <= count; ++seed) {
        Findings one = simulate(seed, planted);
        for (std::string& violation : one.violations)
            violation = "seed " + std::to_string(seed) + ": " + violation;
        all.add(one);
    }
    return all;
}

std::string first_of(const std::vector<std::string>& violations) {
    std::string text;
    for (std::size_t i = 0; i < std::min<std::size_t>(violations.size(), 10); ++i)
        text += violations[i] + "\n";
    return text;
}

bool mentions(const Findings& findings, std::string_view words) {
    return std::any_of(
        findings.violations.begin(), findings.violations.end(),
        [&](const std::string& text) { return text.find(words) != std::string::npos; });
}

TEST(Simulation, NoWorldBreaksAPromise) {
    const Findings findings = play(worlds);
    EXPECT_TRUE(findings.violations.empty()) << first_of(findings.violations);
    // Worlds in which nothing happens keep every promise: all of this must have happened often.
    for (const char* what :
         {"answered", "refused", "failed", "truncated", "cancelled", "fallbacks", "sticky", "rules",
          "egress T1", "egress T2", "egress T3", "redacted", "restored"}) {
        const auto found = findings.tally.find(what);
        EXPECT_GT(found == findings.tally.end() ? 0U : found->second, worlds / 200) << what;
    }
}

TEST(Simulation, ASeedReplaysItsWorld) {
    for (std::uint64_t seed = 1; seed < 50; ++seed)
        EXPECT_EQ(simulate(seed).tally, simulate(seed).tally);
}

TEST(Simulation, APlantedWrongTierIsFound) {
    Planted planted;
    planted.wrong_tier = true;
    EXPECT_TRUE(mentions(play(100, planted), "its canary is at"));
}

TEST(Simulation, PlantedBlindDetectorsAreFound) {
    Planted planted;
    planted.blind = true;
    EXPECT_TRUE(mentions(play(1000, planted), "is in the third party"));
}

TEST(Simulation, NoLineOfTheLogTellsOfContent) {
    set_log_level(LogLevel::debug);
    testing::internal::CaptureStderr();
    play(500);
    const std::string log = testing::internal::GetCapturedStderr();
    set_log_level(LogLevel::info);
    EXPECT_NE(log.find("exchange"), std::string::npos);
    for (const char* content : {"canary", "leak.example", "PROJECT", "project phrase"})
        EXPECT_EQ(log.find(content), std::string::npos) << content;
}

TEST(Simulation, APlantedForgottenDepartureIsFound) {
    Planted planted;
    planted.forgets_departures = true;
    EXPECT_TRUE(mentions(play(100, planted), "without a committed departure"));
}

TEST(Simulation, APlantedLostTraceIsFound) {
    Planted planted;
    planted.loses_traces = true;
    const Findings findings = play(100, planted);
    EXPECT_TRUE(mentions(findings, "it left not one trace"));
    EXPECT_TRUE(mentions(findings, "the last byte went before the trace was committed"));
}

}  // namespace
}  // namespace molly::simulation
