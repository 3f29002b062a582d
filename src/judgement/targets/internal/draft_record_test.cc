#include "targets/internal/draft_record.h"

#include <gtest/gtest.h>

namespace molly::targets::internal {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

/// A large model behind a near network: drafts are cheap beside its steps.
DraftCosts near() {
    return {.rate = 0.8, .draft_ms = 5, .round_ms = 2, .step_ms = 50, .row_ms = 1};
}

double gain_of(const DraftCosts& costs, std::uint32_t tokens) {
    double came = 1;
    double all = 1;
    for (std::uint32_t n = 0; n < tokens; ++n)
        came += all *= costs.rate;
    const double took = tokens * (costs.draft_ms + costs.row_ms) + costs.round_ms + costs.step_ms;
    return came * costs.step_ms / took;
}

TEST(DraftRecordTest, TheBlockIsTheOneThatBringsMostTokensPerSecond) {
    const BlockChoice choice = choose_block(near(), 32);
    EXPECT_GT(choice.tokens, 3U);
    EXPECT_LT(choice.tokens, 16U);
    EXPECT_NEAR(choice.gain, gain_of(near(), choice.tokens), 1e-9);
    for (std::uint32_t tokens = 1; tokens <= 32; ++tokens)
        EXPECT_LE(gain_of(near(), tokens), choice.gain + 1e-9) << tokens;
    EXPECT_LE(choose_block(near(), 3).tokens, 3U);
}

TEST(DraftRecordTest, BetterGuessesMakeLongerBlocks) {
    DraftCosts sure = near();
    sure.rate = 0.95;
    EXPECT_GT(choose_block(sure, 32).tokens, choose_block(near(), 32).tokens);
    EXPECT_GT(choose_block(sure, 32).gain, choose_block(near(), 32).gain);
}

TEST(DraftRecordTest, NothingIsDraftedWhereItDoesNotPay) {
    DraftCosts slow_here = near();
    slow_here.draft_ms = 60;
    EXPECT_EQ(choose_block(slow_here, 32).tokens, 0U);
    DraftCosts far = near();
    far.round_ms = 400;
    EXPECT_EQ(choose_block(far, 32).tokens, 0U);
    DraftCosts wrong = near();
    wrong.rate = 0.05;
    EXPECT_EQ(choose_block(wrong, 32).tokens, 0U);
    DraftCosts dear_rows = near();
    dear_rows.row_ms = 50;
    EXPECT_EQ(choose_block(dear_rows, 32).tokens, 0U);
}

TEST(DraftRecordTest, AFewAreTriedBeforeAnythingIsKnown) {
    EXPECT_EQ(choose_block({}, 32).tokens, 4U);
    EXPECT_EQ(choose_block({}, 2).tokens, 2U);
}

DraftRecord::Block block(std::uint32_t drafted, std::uint32_t accepted) {
    DraftRecord::Block out;
    out.drafted = drafted;
    out.accepted = accepted;
    out.draft_ms = 5.0 * drafted;
    out.call_ms = 60;
    out.check_ms = 54;
    out.step_ms = 50;
    return out;
}

TEST(DraftRecordTest, WhatWasSeenBecomesCosts) {
    DraftRecord record;
    DraftRecord::Block first = block(4, 4);
    first.draft_ms = 5000;  // the prompt
    first.first = true;
    record.saw(first);
    EXPECT_EQ(record.costs().draft_ms, 0);
    for (int i = 0; i < 50; ++i)
        record.saw(block(4, 4));
    EXPECT_NEAR(record.costs().draft_ms, 5, 1e-6);
    EXPECT_NEAR(record.costs().round_ms, 6, 1e-6);
    EXPECT_NEAR(record.costs().step_ms, 50, 1e-6);
    EXPECT_NEAR(record.costs().row_ms, 1, 1e-6);
    EXPECT_GT(record.costs().rate, 0.95);
    for (int i = 0; i < 100; ++i)
        record.saw(block(4, 0));
    EXPECT_LT(record.costs().rate, 0.05);
    EXPECT_EQ(choose_block(record.costs(), 32).tokens, 0U);
}

// Of four drafted of which one came, two say something: what follows a wrong one was not tried.
TEST(DraftRecordTest, TheRateIsOfTokensThatWereTried) {
    DraftRecord record;
    for (int i = 0; i < 500; ++i)
        record.saw(block(4, 1));
    EXPECT_NEAR(record.costs().rate, 0.5, 0.05);
}

TEST(DraftRecordTest, ItRestsLongerEachTimeAndThenMeasuresAnew) {
    DraftRecord record;
    MonoTime now{std::chrono::hours(1)};
    for (int i = 0; i < 20; ++i)
        record.saw(block(4, 0));
    EXPECT_TRUE(record.pays(now));
    minutes rest{1};
    for (int i = 0; i < 8; ++i) {
        record.rest(now);
        EXPECT_EQ(record.costs().draft_ms, 0) << "stale evidence";
        record.rest(now + seconds(1));  // by a request that was under way
        EXPECT_FALSE(record.pays(now + rest - seconds(1))) << i;
        EXPECT_TRUE(record.pays(now + rest)) << i;
        now += rest;
        rest = std::min(minutes(32), 2 * rest);
    }
}

TEST(DraftRecordTest, WholeAnswersHaveTheLastWord) {
    DraftRecord record;
    const MonoTime now{std::chrono::hours(1)};
    record.answered(false, 20, now);
    record.answered(true, 15, now);
    EXPECT_TRUE(record.pays(now));
    for (int i = 0; i < 5; ++i)
        record.answered(true, 30, now);
    EXPECT_FALSE(record.pays(now));
    // Without an answer of the other node alone, its own step counts.
    DraftRecord other;
    other.saw(block(4, 4));
    other.answered(true, 49, now);
    EXPECT_TRUE(other.pays(now));
    other.answered(true, 1000, now);
    EXPECT_FALSE(other.pays(now));
}

}  // namespace
}  // namespace molly::targets::internal
