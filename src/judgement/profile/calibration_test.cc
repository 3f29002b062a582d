#include "profile/internal/calibration.h"

#include <cmath>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

namespace molly::profile {
namespace {

constexpr std::size_t groups = 4;

/// Rows whose logits are `times` too large where the text is long, and right otherwise.
std::vector<ChoiceRow> boastful_rows(std::size_t count, float times) {
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    std::vector<ChoiceRow> rows(count);
    for (std::size_t i = 0; i < count; ++i) {
        ChoiceRow& row = rows[i];
        const bool is_long = i % 2 == 0;
        row.signs = {1, is_long ? 1.0F : -1.0F, 0};
        row.logits.resize(groups);
        double whole = 0;
        for (float& logit : row.logits) {
            logit = 1.5F * normal(random);
            whole += std::exp(static_cast<double>(logit));
        }
        double left = static_cast<double>(random()) / 4294967296.0 * whole;
        while (row.right + 1U < groups &&
               left > std::exp(static_cast<double>(row.logits[row.right])))
            left -= std::exp(static_cast<double>(row.logits[row.right++]));
        if (is_long) {
            for (float& logit : row.logits)
                logit *= times;
        }
    }
    return rows;
}

std::vector<std::uint8_t> one_each() {
    std::vector<std::uint8_t> group_of(groups);
    std::iota(group_of.begin(), group_of.end(), std::uint8_t{0});
    return group_of;
}

TEST(Calibration, ABoastThatFollowsASignIsTakenBack) {
    const auto rows = boastful_rows(2000, 3);
    Honesty held_out;
    const Choice choice = fit_choice(rows, one_each(), groups, held_out);
    EXPECT_EQ(held_out.rows, rows.size());
    EXPECT_LT(held_out.error, 0.04);
    EXPECT_NEAR(choice.factor({1, 1, 0}), 1.0 / 3, 0.08);
    EXPECT_NEAR(choice.factor({1, -1, 0}), 1, 0.2);
}

TEST(Calibration, WhatIsHonestIsLeftAlone) {
    Honesty held_out;
    const Choice choice = fit_choice(boastful_rows(2000, 1), one_each(), groups, held_out);
    EXPECT_NEAR(choice.factor({1, 1, 0}), 1, 0.15);
    EXPECT_LT(held_out.error, 0.04);
}

TEST(Calibration, TooFewRowsFitNothing) {
    Honesty held_out;
    const Choice choice = fit_choice(boastful_rows(5, 3), one_each(), groups, held_out);
    EXPECT_EQ(held_out.rows, 0U);
    EXPECT_EQ(choice.factor({1, 1, 1}), 1);
}

TEST(Calibration, SharesOfGroupsAddUp) {
    Choice choice;
    choice.bias = {0.5F, -0.5F};
    const ChoiceRow row{.logits = {1, 2, 3}, .signs = {1, 0, 0}};
    const auto shares = shares_of(choice, std::vector<std::uint8_t>{0, 1, 1}, 2, row);
    EXPECT_NEAR(shares[0] + shares[1], 1, 1e-6);
    EXPECT_GT(shares[1], shares[0]);
    // However large the signs: no overflow.
    choice.slopes = {100, 100, 100};
    EXPECT_TRUE(std::isfinite(choice.factor({1, 50, 50})));
}

TEST(Calibration, ScopeLearnsItsBaseRate) {
    std::vector<ScopeRow> rows(300);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        rows[i].outside = i % 6 == 0;
        rows[i].signs = {1, rows[i].outside ? 2.0F : 1.0F, 0, 0, 0.5F, 0};
    }
    Honesty held_out;
    const ScopeSigns weights = fit_scope(rows, held_out);
    EXPECT_LT(held_out.error, 0.1);
    EXPECT_GT(weights[1], 0.5);
    std::vector<ScopeRow> inside(300);
    EXPECT_EQ(fit_scope(inside, held_out)[1], 1);
    EXPECT_EQ(held_out.rows, 0U);
}

}  // namespace
}  // namespace molly::profile
