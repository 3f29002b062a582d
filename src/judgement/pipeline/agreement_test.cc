#include "pipeline/internal/agreement.h"

#include <array>

#include <gtest/gtest.h>

namespace molly::pipeline {
namespace {

TEST(Agreement, IsOfWordsWhateverTheirCaseAndPunctuation) {
    EXPECT_DOUBLE_EQ(agreement("Rome.", "rome", false), 1);
    EXPECT_DOUBLE_EQ(agreement("Roma è la capitale", "la capitale è Roma!", false), 1);
    EXPECT_DOUBLE_EQ(agreement("yes", "no", false), 0);
    EXPECT_DOUBLE_EQ(agreement("a b", "a c", false), 0.5);
    // A word counts as often as it stands there.
    EXPECT_DOUBLE_EQ(agreement("a a a", "a", false), 0.5);
    EXPECT_DOUBLE_EQ(agreement("", "", false), 1);
    EXPECT_DOUBLE_EQ(agreement("", "a", false), 0);
}

TEST(Agreement, SumsThatEndInDifferentNumbersAgreeInNothing) {
    EXPECT_GT(agreement("the sum is 42", "the sum is 43", false), 0.7);
    EXPECT_DOUBLE_EQ(agreement("the sum is 42", "the sum is 43", true), 0);
    EXPECT_DOUBLE_EQ(agreement("42", "I add 40 and 2, so 42.", true) > 0, true);
    EXPECT_DOUBLE_EQ(agreement("3.5", "3,5", true), 0);  // written otherwise: not the same
}

TEST(Support, AMajorityOutweighsOneOfMoreWeight) {
    const std::array<Voice, 3> voices = {{{.text = "rome", .weight = 0.5},
                                          {.text = "paris", .weight = 0.3},
                                          {.text = "Paris", .weight = 0.3}}};
    const auto out = support(voices, false);
    EXPECT_DOUBLE_EQ(out[0], 0.5);
    EXPECT_DOUBLE_EQ(out[1], 0.6);
    EXPECT_EQ(best_of(out), 1U);
    EXPECT_EQ(best_of({}), 0U);
}

TEST(ReadScore, TakesTheFirstNumberOfAHundredOrOfOne) {
    double score = -1;
    EXPECT_TRUE(read_score("85", score));
    EXPECT_DOUBLE_EQ(score, 0.85);
    EXPECT_TRUE(read_score("About 70% sure, 1 doubt", score));
    EXPECT_DOUBLE_EQ(score, 0.7);
    EXPECT_TRUE(read_score("0.25", score));
    EXPECT_DOUBLE_EQ(score, 0.25);
    EXPECT_TRUE(read_score("1", score));
    EXPECT_DOUBLE_EQ(score, 0.01);
    for (const char* nothing : {"", "surely", "-5", "1000", "250"})
        EXPECT_FALSE(read_score(nothing, score)) << nothing;
}

}  // namespace
}  // namespace molly::pipeline
