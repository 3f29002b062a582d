#include "evaluate/grade.h"

#include <vector>

#include <gtest/gtest.h>

namespace molly::evaluate {
namespace {

Grade graded(std::string_view expected, std::string_view answer) {
    return grade(*parse_json(expected), answer);
}

TEST(Grade, a_label_is_right_or_wrong) {
    EXPECT_TRUE(graded(R"("travel")", R"( "travel" )").exact);
    EXPECT_FALSE(graded(R"("travel")", R"("Travel")").exact);
    EXPECT_EQ(graded(R"("travel")", R"("home")").partial, 0);
    EXPECT_EQ(graded(R"("travel")", "travel").partial, 0);
}

TEST(Grade, an_object_counts_members_in_any_order) {
    EXPECT_TRUE(graded(R"({"a":1,"b":"x"})", R"({"b":"x","a":1})").exact);
    const Grade half = graded(R"({"a":1,"b":"x"})", R"({"a":1,"b":"y"})");
    EXPECT_FALSE(half.exact);
    EXPECT_DOUBLE_EQ(half.partial, 0.5);
    EXPECT_DOUBLE_EQ(graded(R"({"a":1,"b":"x"})", R"({"a":1})").partial, 2.0 / 3);
    EXPECT_DOUBLE_EQ(graded(R"({"a":1})", R"({"a":1,"b":2,"c":3})").partial, 0.5);
    EXPECT_EQ(graded(R"({"a":1})", "[1]").partial, 0);
}

TEST(Grade, a_list_counts_each_element_once) {
    EXPECT_TRUE(graded("[]", "[]").exact);
    EXPECT_DOUBLE_EQ(graded("[]", "[]").partial, 1);
    EXPECT_EQ(graded("[]", R"([{"a":1}])").partial, 0);
    EXPECT_DOUBLE_EQ(graded(R"([{"a":1},{"b":2}])", R"([{"b":2},{"b":2}])").partial, 0.5);
}

TEST(Grade, an_answer_that_was_cut_is_wrong) {
    EXPECT_FALSE(graded(R"({"a":1})", R"({"a":1)").exact);
    EXPECT_FALSE(graded(R"({"a":1})", "").exact);
}

TEST(Wilson, known_values) {
    const Estimate half = wilson(50, 100);
    EXPECT_NEAR(half.low, 0.4038, 1e-4);
    EXPECT_NEAR(half.high, 0.5962, 1e-4);
    const Estimate none = wilson(0, 10);
    EXPECT_EQ(none.low, 0);
    EXPECT_NEAR(none.high, 0.2775, 1e-4);
    EXPECT_EQ(wilson(0, 0).high, 1);
}

TEST(MeanOfGroups, contains_the_mean_and_repeats) {
    std::vector<double> a(300), b(300);
    for (std::size_t i = 0; i < a.size(); ++i) {
        a[i] = i % 10 < 6 ? 1 : 0;
        b[i] = i % 10 < 4 ? 1 : 0;
    }
    const std::vector<std::vector<double>> one = {differences(a, b)};
    const Estimate gain = mean_of_groups(one, 1);
    EXPECT_NEAR(gain.mean, 0.2, 1e-12);
    EXPECT_LT(gain.low, 0.2);
    EXPECT_GT(gain.low, 0.14);
    EXPECT_LT(gain.high, 0.26);
    EXPECT_EQ(mean_of_groups(one, 1).low, gain.low);
    EXPECT_NE(mean_of_groups(one, 2).low, gain.low);
}

TEST(MeanOfGroups, counts_every_group_alike) {
    const std::vector<std::vector<double>> groups = {
        std::vector<double>(10, 1.0), std::vector<double>(90, 0.0), {}};
    const Estimate both = mean_of_groups(groups, 1);
    EXPECT_DOUBLE_EQ(both.mean, 0.5);
    EXPECT_DOUBLE_EQ(both.low, 0.5);
    EXPECT_DOUBLE_EQ(both.high, 0.5);
    EXPECT_EQ(mean_of_groups({}, 1).mean, 0);
}

}  // namespace
}  // namespace molly::evaluate
