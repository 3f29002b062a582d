#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include "stage.h"

namespace molly::scenarios {
namespace {

std::vector<std::filesystem::path> all_files() {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(MOLLY_SCENARIOS)) {
        if (entry.path().extension() == ".scenario") files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    return files;
}

Result<Scenario> read_file(const std::filesystem::path& file) {
    std::ifstream stream(file, std::ios::binary);
    return read_scenario({std::istreambuf_iterator<char>(stream), {}});
}

class Scenarios : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(Scenarios, HappenAsWritten) {
    const auto scenario = read_file(GetParam());
    ASSERT_TRUE(scenario) << scenario.error().message();
    const auto stage = Stage::make(*scenario);
    ASSERT_TRUE(stage) << stage.error().message();
    for (const Event& event : scenario->events) {
        if (event.kind == Event::Kind::wait) (*stage)->wait(event.wait);
        if (event.kind == Event::Kind::turn) (*stage)->turn(event.target, event.manner);
        if (event.kind != Event::Kind::ask) continue;
        for (const std::string& differs :
             differences(event.expected, (*stage)->ask(event.request)).found)
            ADD_FAILURE() << scenario->title << "\n  " << differs;
    }
}

/// Whether attempts of one request bear on the placement of the next, or the label sticks to a
/// conversation that only the pipeline knows: a rehearsal has neither.
bool beyond_a_rehearsal(const std::filesystem::path& file, const Scenario& scenario) {
    return file.stem() == "a-label-sticks-to-its-conversation" ||
           file.stem() == "what-was-found-in-a-turn-sticks" ||
           std::any_of(scenario.events.begin(), scenario.events.end(),
                       [](const Event& event) { return event.kind != Event::Kind::ask; });
}

TEST_P(Scenarios, AreRehearsedWithTheSameResult) {
    const auto scenario = read_file(GetParam());
    ASSERT_TRUE(scenario) << scenario.error().message();
    if (beyond_a_rehearsal(GetParam(), *scenario)) GTEST_SKIP() << "needs attempts";
    const auto rehearsal = Rehearsal::make(*scenario);
    ASSERT_TRUE(rehearsal) << rehearsal.error().message();
    for (const Event& event : scenario->events) {
        const Differences all = differences(event.expected, (*rehearsal)->ask(event.request));
        for (const std::string& differs : all.found)
            ADD_FAILURE() << scenario->title << "\n  " << differs;
    }
}

std::string name_of(const ::testing::TestParamInfo<std::filesystem::path>& file) {
    std::string name = file.param.stem().string();
    for (char& c : name)
        c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
    return name;
}

INSTANTIATE_TEST_SUITE_P(Files, Scenarios, ::testing::ValuesIn(all_files()), name_of);

TEST(ScenarioReader, SaysWhichLineItDoesNotUnderstand) {
    EXPECT_EQ(blocks_of("  indented: first\n").error().message(),
              "line 1: an indented line needs a heading above it");
    const auto blocks = blocks_of("# note\nask anna\n  user: a: b\n");
    ASSERT_TRUE(blocks);
    EXPECT_EQ(blocks->at(0).lines.at(0).rest, "a: b");
    domain::Request request;
    EXPECT_EQ(read_request({{7, "colour", "red"}}, request).error().message(),
              "line 7: a request has no part `colour`");
}

TEST(ScenarioReader, NumbersThatAreNoneAreFaultsOfTheirLine) {
    for (const std::string line : {"target a: T1, quality high", "target a: T1, context -4",
                                   "target a: T1, price", "wait for it"})
        EXPECT_EQ(read_scenario("scenario: x\n" + line + "\n").error().code(),
                  ErrorCode::invalid_request)
            << line;
}

TEST(ScenarioReader, AScenarioWithoutTargetsGoesOnFromItsBase) {
    Scenario base;
    DeclaredTarget home;
    home.spec.id = "home";
    base.targets.push_back(home);
    const std::string asks = "key anna:\nask anna\n  user: x\nexpect\n  plan: home\n";
    EXPECT_EQ(read_scenario("scenario: x\n" + asks, base)->targets.size(), 1U);
    const auto alone = read_scenario("scenario: x\ntarget den: T0\ntarget lan: T1\n" + asks, base);
    EXPECT_EQ(alone->targets.size(), 2U);
    EXPECT_EQ(alone->targets.front().spec.id, "den");
}

TEST(ScenarioReader, WhatOnlyAttemptsShowIsCountedAsUnchecked) {
    Played played;
    played.trace.id = "r";
    const Differences all = differences({{1, "answered by", "home"}, {2, "rule", ""}}, played);
    EXPECT_TRUE(all.found.empty());
    EXPECT_EQ(all.checked, 1U);
    EXPECT_EQ(all.unchecked, 1U);
}

TEST(ScenarioReader, AWrongExpectationIsADifference) {
    Played played;
    played.attempted = true;
    played.trace.id = "r";
    played.trace.target = "home";
    EXPECT_TRUE(differences({{1, "answered by", "home"}}, played).found.empty());
    EXPECT_EQ(differences({{1, "answered by", "office"}}, played).found.size(), 1U);
    EXPECT_EQ(differences({{1, "excluded", "home because x"}}, played).found.size(), 1U);
    EXPECT_EQ(differences({{1, "clss", "private"}}, played).found.size(), 1U);
    played.trace.id.clear();
    EXPECT_EQ(differences({}, played).found.size(), 1U);
}

}  // namespace
}  // namespace molly::scenarios
