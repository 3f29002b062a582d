#include <algorithm>
#include <cctype>

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

class Scenarios : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(Scenarios, HappenAsWritten) {
    const auto scenario = read_scenario(GetParam());
    ASSERT_TRUE(scenario) << scenario.error().message();
    const auto stage = Stage::make(*scenario);
    ASSERT_TRUE(stage) << stage.error().message();
    for (const Event& event : scenario->events) {
        if (event.kind == Event::Kind::wait) (*stage)->wait(event.wait);
        if (event.kind == Event::Kind::turn) (*stage)->turn(event.target, event.behaviour);
        if (event.kind != Event::Kind::ask) continue;
        for (const std::string& differs : differences(event.expected, (*stage)->ask(event.request)))
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

TEST(ScenarioReader, AWrongExpectationIsADifference) {
    Played played;
    played.trace.id = "r";
    played.trace.target = "home";
    EXPECT_TRUE(differences({{1, "answered by", "home"}}, played).empty());
    EXPECT_EQ(differences({{1, "answered by", "office"}}, played).size(), 1U);
    EXPECT_EQ(differences({{1, "excluded", "home because x"}}, played).size(), 1U);
    EXPECT_EQ(differences({{1, "clss", "private"}}, played).size(), 1U);
    played.trace.id.clear();
    EXPECT_EQ(differences({}, played).size(), 1U);
}

}  // namespace
}  // namespace molly::scenarios
