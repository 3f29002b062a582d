#include "engine/internal/step_cost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace molly::engine {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::IsEmpty;

using Rows = std::vector<std::uint32_t>;

Rows passes(const Rows& rows) {
    return passes_of(rows);
}

TEST(Passes, neighbours_with_equally_many_rows_share_one) {
    EXPECT_THAT(passes({1, 1, 1}), ElementsAre(3));
    EXPECT_THAT(passes({0, 4, 4, 0}), ElementsAre(8));
    EXPECT_THAT(passes({}), IsEmpty());
    EXPECT_THAT(passes({0, 0}), IsEmpty());
}

TEST(Passes, a_hole_ends_a_pass) {
    EXPECT_THAT(passes({1, 0, 1}), ElementsAre(1, 1));
    EXPECT_THAT(passes({1, 1, 0, 0, 1, 0, 1}), ElementsAre(2, 1, 1));
}

TEST(Passes, more_rows_than_the_others_have_come_later) {
    EXPECT_THAT(passes({5, 1}), ElementsAre(2, 4));
    EXPECT_THAT(passes({5, 1, 5}), ElementsAre(3, 4, 4));
    EXPECT_THAT(passes({1, 3, 3}), ElementsAre(3, 4));
}

TEST(StepCost, begins_hopeful_and_learns) {
    StepCost cost;
    EXPECT_EQ(cost.of(1), 0);
    cost.took(Rows{1}, 10);
    EXPECT_EQ(cost.of(1), 10);
    EXPECT_EQ(cost.of(8), 10) << "not tried yet";
    cost.took(Rows{8}, 38);
    EXPECT_EQ(cost.of(8), 38);
    EXPECT_EQ(cost.of(4), 22) << "on the line between";
    for (int i = 0; i < 100; ++i)
        cost.took(Rows{8}, 20);
    EXPECT_THAT(cost.of(8), DoubleNear(20, 0.1));
    EXPECT_EQ(cost.of(1), 10);
}

TEST(StepCost, one_stall_changes_little) {
    StepCost cost;
    cost.took(Rows{1}, 10);
    cost.took(Rows{1}, 10'000);
    EXPECT_LE(cost.of(1), 16);
}

TEST(StepCost, several_passes_share_what_a_step_took) {
    StepCost cost;
    cost.took(Rows{2}, 10);
    for (int i = 0; i < 200; ++i) {
        cost.took(Rows{2, 4}, 30);
        cost.took(Rows{2}, 10);
    }
    EXPECT_THAT(cost.of(2), DoubleNear(10, 1));
    EXPECT_THAT(cost.of(4), DoubleNear(20, 1.5));
}

TEST(StepCost, numbers_of_rows_far_apart_stay_apart) {
    StepCost cost;
    cost.took(Rows{500}, 500);
    EXPECT_LT(cost.of(10), 20) << "no rows take no time";
    cost.took(Rows{8192}, 9000);
    EXPECT_EQ(cost.of(500), 500);
}

Rows filled(Rows rows, const StepCost& cost, std::size_t never = 99) {
    const auto places =
        holes_to_fill(rows, cost, [&](std::size_t place) { return place != never; });
    return {places.begin(), places.end()};
}

TEST(Holes, are_filled_where_a_row_costs_less_than_a_pass) {
    StepCost cost;
    cost.took(Rows{1}, 10);
    cost.took(Rows{4}, 13);
    EXPECT_THAT(filled({1, 0, 1}, cost), ElementsAre(1));
    EXPECT_THAT(filled({1, 0, 1, 0, 0, 1}, cost), ElementsAre(1, 3, 4));
    EXPECT_THAT(filled({1, 0, 1}, cost, 1), IsEmpty()) << "it cannot";
    EXPECT_THAT(filled({0, 1, 1, 0}, cost), IsEmpty()) << "there is none";
}

TEST(Holes, are_left_where_rows_are_dear) {
    StepCost cost;
    cost.took(Rows{1}, 10);
    cost.took(Rows{32}, 320);
    EXPECT_THAT(filled({1, 0, 0, 0, 1}, cost), IsEmpty());
}

}  // namespace
}  // namespace molly::engine
