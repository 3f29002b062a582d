#include "engine/internal/acceptance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace molly::engine {
namespace {

using testing::DoubleNear;
using testing::Each;
using testing::ElementsAre;

using Rows = std::vector<std::uint32_t>;

/// A machine on which a row more costs `slope` of the first.
StepCost machine(double slope) {
    StepCost cost;
    for (std::uint32_t rows = 1; rows <= 32; ++rows)
        cost.took(Rows{rows}, 10 * (1 + slope * (rows - 1)));
    return cost;
}

TEST(Acceptance, follows_what_it_sees) {
    AcceptRates all(0.05);
    for (int i = 0; i < 200; ++i)
        all.saw(DraftKind::copy_long, i % 4 != 0);
    EXPECT_THAT(all.of(DraftKind::copy_long), DoubleNear(0.75, 0.15));
    const AcceptRates mine(all, 0.2);
    EXPECT_EQ(mine.of(DraftKind::copy_long), all.of(DraftKind::copy_long));
    EXPECT_EQ(copy_kind(2), DraftKind::copy_short);
    EXPECT_EQ(copy_kind(4), DraftKind::copy_middle);
    EXPECT_EQ(copy_kind(16), DraftKind::copy_long);
}

TEST(Acceptance, counts_tokens_that_come_one_after_the_other) {
    EXPECT_EQ(expected_tokens(1, 5), 5);
    EXPECT_EQ(expected_tokens(0.5, 2), 0.75);
    EXPECT_EQ(expected_tokens(0.9, 0), 0);
}

TEST(Drafts, are_long_where_rows_are_cheap_and_guesses_good) {
    const DraftOffer offer{.place = 0, .most = 8, .rate = 0.95};
    const auto choice = choose_drafts(Rows{1}, 1, {{offer}}, 100, machine(0.05), 0);
    EXPECT_THAT(choice.lengths, ElementsAre(8));
    EXPECT_GT(choice.gain, 3);
}

TEST(Drafts, are_no_gain_where_rows_cost_what_tokens_cost) {
    const DraftOffer offer{.place = 0, .most = 8, .rate = 0.9};
    EXPECT_LT(choose_drafts(Rows{1}, 1, {{offer}}, 100, machine(1), 0).gain, 1);
}

TEST(Drafts, are_no_gain_where_guesses_are_bad) {
    const DraftOffer offer{.place = 0, .most = 8, .rate = 0.1};
    EXPECT_LT(choose_drafts(Rows{1}, 1, {{offer}}, 100, machine(0.15), 0).gain, 1);
}

TEST(Drafts, of_a_slow_model_are_no_gain) {
    const DraftOffer offer{.place = 0, .most = 8, .rate = 0.9, .by_model = true};
    EXPECT_GT(choose_drafts(Rows{1}, 1, {{offer}}, 100, machine(0.05), 0.5).gain, 2);
    EXPECT_LT(choose_drafts(Rows{1}, 1, {{offer}}, 100, machine(0.05), 10).gain, 1);
}

// Rows that the others do not have cost a pass of their own.
TEST(Drafts, of_one_among_many_pay_for_their_pass) {
    const DraftOffer offer{.place = 1, .most = 2, .rate = 0.9};
    EXPECT_LT(choose_drafts(Rows{1, 1, 1, 1}, 4, {{offer}}, 100, machine(0.05), 0).gain, 1);
    std::vector<DraftOffer> all;
    for (std::size_t place = 0; place < 4; ++place)
        all.push_back({.place = place, .most = 4, .rate = 0.9});
    const auto together = choose_drafts(Rows{1, 1, 1, 1}, 4, all, 100, machine(0.05), 0);
    EXPECT_GT(together.gain, 1.5);
    EXPECT_THAT(together.lengths, Each(4U));
}

TEST(Drafts, keep_within_the_room_of_the_step) {
    std::vector<DraftOffer> all;
    for (std::size_t place = 0; place < 3; ++place)
        all.push_back({.place = place, .most = 4, .rate = 0.9});
    const auto choice = choose_drafts(Rows{1, 1, 1}, 3, all, 7, machine(0.01), 0);
    std::uint32_t sum = 0;
    for (const std::uint32_t length : choice.lengths)
        sum += length;
    EXPECT_LE(sum, 7U);
    EXPECT_THAT(choose_drafts(Rows{1, 1, 1}, 3, all, 0, machine(0.01), 0).lengths, Each(0U));
}

TEST(Drafts, wait_until_something_is_known_of_the_cost) {
    const DraftOffer offer{.place = 0, .most = 8, .rate = 0.9};
    EXPECT_THAT(choose_drafts(Rows{1}, 1, {{offer}}, 100, StepCost(), 0).lengths, ElementsAre(0));
}

}  // namespace
}  // namespace molly::engine
