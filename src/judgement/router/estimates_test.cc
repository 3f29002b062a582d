#include "router/estimates.h"

#include <gtest/gtest.h>

#include "router/internal/hand_clock.h"

namespace molly::router {
namespace {

domain::CapabilityProfile about(domain::Field field, float share = 1) {
    domain::CapabilityProfile needs;
    needs.classified = true;
    needs.fields[static_cast<std::size_t>(field)] = share;
    needs.difficulty = 0.2F;
    return needs;
}

class EstimatesTest : public ::testing::Test {
protected:
    EstimatesTest() {
        target_.id = "home";
        target_.quality = 0.5;
    }
    Belief at(const domain::CapabilityProfile& needs) { return estimates_.at(target_, "", needs); }
    void judge(const domain::CapabilityProfile& needs, double score, int times) {
        for (int i = 0; i < times; ++i)
            std::ignore = estimates_.learn("home", "", needs, score, 1);
    }

    HandClock clock_;
    domain::TargetSpec target_;
    Estimates estimates_{{}, clock_};
};

TEST_F(EstimatesTest, ADeclarationIsTakenAtItsWordUntilSomethingIsSeen) {
    const Belief belief = at(about(domain::Field::medicine));
    EXPECT_DOUBLE_EQ(belief.lower, 0.5);
    EXPECT_DOUBLE_EQ(belief.mean, 0.5);
    EXPECT_EQ(belief.evidence, 0);
    EXPECT_DOUBLE_EQ(at({}).lower, 0.5);
}

TEST_F(EstimatesTest, ThinEvidenceMovesLittleAndMuchMovesFar) {
    judge(about(domain::Field::medicine), 1, 2);
    const double little = at(about(domain::Field::medicine)).lower;
    judge(about(domain::Field::medicine), 1, 100);
    const Belief much = at(about(domain::Field::medicine));
    EXPECT_GT(little, 0.5);
    EXPECT_LT(little, 0.6);
    EXPECT_GT(much.lower, 0.85);
    EXPECT_LT(much.lower, much.mean);
}

TEST_F(EstimatesTest, WhatIsSeenInOneFieldSaysNothingOfAnother) {
    judge(about(domain::Field::medicine), 0, 50);
    EXPECT_LT(at(about(domain::Field::medicine)).lower, 0.2);
    EXPECT_DOUBLE_EQ(at(about(domain::Field::arts)).lower, 0.5);
    auto hard = about(domain::Field::medicine);
    hard.difficulty = 0.9F;
    EXPECT_DOUBLE_EQ(at(hard).lower, 0.5);
}

TEST_F(EstimatesTest, ATargetThatGetsWorseIsNoticedWithinItsMemory) {
    judge(about(domain::Field::science), 1, 1000);
    EXPECT_GT(at(about(domain::Field::science)).lower, 0.9);
    judge(about(domain::Field::science), 0, 200);
    EXPECT_LT(at(about(domain::Field::science)).lower, 0.5);
}

TEST_F(EstimatesTest, StaleEvidenceFades) {
    judge(about(domain::Field::science), 1, 100);
    const double fresh = at(about(domain::Field::science)).lower;
    clock_.advance(std::chrono::hours(24 * 600));
    const Belief stale = at(about(domain::Field::science));
    EXPECT_LT(stale.lower, fresh);
    EXPECT_LT(stale.evidence, 1);
    EXPECT_NEAR(stale.mean, 0.5, 0.03);
}

TEST_F(EstimatesTest, ASpecialistHasItsOwnPriorAndRowsComeBack) {
    target_.specialists.push_back(
        {.adapter = "law", .field = domain::Field::humanities, .quality = 0.8});
    EXPECT_DOUBLE_EQ(estimates_.at(target_, "law", about(domain::Field::humanities)).lower, 0.8);
    EXPECT_DOUBLE_EQ(estimates_.at(target_, "", about(domain::Field::humanities)).lower, 0.5);
    const auto changed = estimates_.learn("home", "law", about(domain::Field::humanities), 1, 30);
    ASSERT_EQ(changed.size(), 1U);
    Estimates other({}, clock_);
    other.load(estimates_.rows());
    EXPECT_DOUBLE_EQ(other.at(target_, "law", about(domain::Field::humanities)).lower,
                     estimates_.at(target_, "law", about(domain::Field::humanities)).lower);
}

TEST_F(EstimatesTest, NonsenseIsNotLearned) {
    EXPECT_TRUE(estimates_.learn("home", "", {}, 0.0 / 0.0, 1).empty());
    EXPECT_TRUE(estimates_.learn("home", "", {}, 1, 0).empty());
    std::ignore = estimates_.learn("home", "", {}, 7, 1);
    EXPECT_LE(at({}).mean, 1);
}

}  // namespace
}  // namespace molly::router
