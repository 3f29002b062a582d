#include "router/roster.h"

#include <gtest/gtest.h>

#include "policy/policy_engine.h"
#include "router/internal/hand_clock.h"
#include "router/router.h"

namespace molly::router {
namespace {

using domain::Field;
using domain::Tier;

std::shared_ptr<domain::TargetSpec> target(std::string id, Tier tier, double quality) {
    auto spec = std::make_shared<domain::TargetSpec>();
    spec->id = std::move(id);
    spec->tier = tier;
    spec->quality = quality;
    spec->tokens_per_second = 1000;
    return spec;
}

domain::Specialist specialist(std::string adapter, Field field, double quality = 0.7) {
    domain::Specialist one;
    one.adapter = std::move(adapter);
    one.field = field;
    one.quality = quality;
    return one;
}

/// A house of one target with two specialists, and a bare one.
std::vector<std::shared_ptr<const domain::TargetSpec>> house() {
    auto home = target("home", Tier::t0, 0.3);
    home->specialists = {specialist("law", Field::humanities),
                         specialist("law", Field::business, 0.6),
                         specialist("med", Field::medicine)};
    return {target("office", Tier::t1, 0.5), home};
}

TEST(Roster, HoldsTheBareModelAndTheSpecialistsOfEachTarget) {
    const Roster roster(house(), nullptr);
    ASSERT_EQ(roster.pairs().size(), 4U);
    EXPECT_EQ(roster.first_of(1), 1U);
    EXPECT_EQ(roster.first_of(2), 4U);
    EXPECT_EQ(roster.pairs()[2].adapter, "law");
    EXPECT_EQ(roster.pairs()[2].declared.size(), 2U);
    EXPECT_EQ(roster.find("home", "med"), 3U);
    EXPECT_EQ(roster.find("home", ""), 1U);
    EXPECT_EQ(roster.find("office", "med"), 4U);
    EXPECT_EQ(roster.find("zoo", ""), 4U);
    // Of equal scores the less exposed tier stands first, then the name.
    EXPECT_LT(roster.pairs()[1].order, roster.pairs()[0].order);
    EXPECT_FALSE(roster.outside());
}

TEST(Roster, KnowsTheDeclarationsOfAnAdapterThatIsAskedForWithItsVersion) {
    const Roster roster(house(), nullptr, "law@2.0.0");
    ASSERT_EQ(roster.pairs().size(), 2U);
    EXPECT_TRUE(roster.pairs()[0].declared.empty());
    EXPECT_EQ(roster.pairs()[1].declared.size(), 2U);
}

TEST(Roster, BeliefsFollowWhatIsLearnedAndTheHour) {
    HandClock clock;
    Estimates estimates({}, clock);
    const Roster roster(house(), &estimates);
    const auto humanities = static_cast<std::size_t>(Field::humanities);
    const auto easy = static_cast<std::size_t>(domain::Band::easy);
    EXPECT_DOUBLE_EQ((*roster.beliefs(humanities, easy))[2].lower, 0.7);
    EXPECT_EQ(roster.beliefs(humanities, easy), roster.beliefs(humanities, easy));  // kept
    domain::CapabilityProfile needs;
    needs.classified = true;
    needs.fields[humanities] = 1;
    needs.difficulty = 0.2F;
    for (int i = 0; i < 30; ++i)
        std::ignore = estimates.learn("home", "law", needs, 0, 1);
    const auto learned = roster.beliefs(humanities, easy);
    EXPECT_LT((*learned)[2].lower, 0.4);
    EXPECT_DOUBLE_EQ((*learned)[2].lower, estimates.at(*roster.targets()[1], "law", needs).lower);
    EXPECT_DOUBLE_EQ((*learned)[0].lower, 0.5);
    clock.advance(std::chrono::hours(24 * 365));
    EXPECT_GT((*roster.beliefs(humanities, easy))[2].lower, (*learned)[2].lower);
}

/// Decisions among what was laid out are those among views.
TEST(Roster, ADecisionIsTheSameHoweverTheCandidatesCome) {
    HandClock clock;
    Estimates estimates({}, clock);
    const Roster roster(house(), &estimates);
    std::vector<TargetView> views(2);
    for (std::size_t i = 0; i < views.size(); ++i)
        views[i].spec = roster.targets()[i];
    views[1].adapters = {"law", "med"};
    views[1].adapters_denied["med"] = "its label";
    using Serving = Moment::Serving;
    Moment moment;
    moment.targets.resize(2);
    moment.pairs = {Serving::yes, Serving::yes, Serving::yes, Serving::denied};
    moment.denied[3] = "its label";
    domain::AnnotatedRequest asked;
    asked.request.caller.key_id = "k";
    asked.capability.classified = true;
    asked.capability.fields[static_cast<std::size_t>(Field::humanities)] = 1;
    asked.capability.answer_tokens = 10;
    const auto cleared = policy::PolicyEngine({}).clear(std::move(asked));
    domain::Decision one;
    domain::Decision other;
    const auto by_views = plan(*cleared, {}, views, {}, one, &estimates);
    const auto by_roster = plan(*cleared, {}, roster, moment, {}, other);
    ASSERT_TRUE(by_views && by_roster);
    ASSERT_EQ(one.candidates.size(), other.candidates.size());
    for (std::size_t i = 0; i < one.candidates.size(); ++i) {
        EXPECT_EQ(one.candidates[i].adapter, other.candidates[i].adapter);
        EXPECT_EQ(one.candidates[i].excluded_by, other.candidates[i].excluded_by);
        EXPECT_DOUBLE_EQ(one.candidates[i].score, other.candidates[i].score);
    }
    EXPECT_EQ(other.candidates.front().adapter, "law");
    EXPECT_EQ(other.candidates.back().excluded_by, "its label");
    const Wanted named{.target = {}, .adapter = "law", .aliased = false};
    EXPECT_EQ(plan(*cleared, named, roster, moment, {}, other).error().code(), ErrorCode::internal);
}

/// What the text lets expect counts as a declaration does: much while nothing was judged.
TEST(Roster, AnExpectationStandsInForTheDeclarationUntilAnswersWereJudged) {
    HandClock clock;
    Estimates estimates({}, clock);
    const Roster roster(house(), &estimates);
    Moment moment;
    moment.targets.resize(2);
    moment.pairs.resize(4, Moment::Serving::yes);
    domain::AnnotatedRequest asked;
    asked.request.caller.key_id = "k";
    asked.capability.classified = true;
    asked.capability.fields[static_cast<std::size_t>(Field::science)] = 1;
    asked.capability.answer_tokens = 10;
    const domain::CapabilityProfile needs = asked.capability;
    const auto cleared = policy::PolicyEngine({}).clear(std::move(asked));
    const auto quality_of = [&](std::span<const Expectation> expected) {
        domain::Decision decision;
        EXPECT_TRUE(plan(*cleared, {}, roster, moment, {}, decision, {}, expected));
        for (const domain::Candidate& one : decision.candidates) {
            if (one.target == "office") return one.quality;
        }
        return -1.0;
    };
    const std::vector<Expectation> well = {{.target = "office", .adapter = {}, .score = 0.9},
                                           {.target = "nobody", .adapter = {}, .score = 1}};
    EXPECT_DOUBLE_EQ(quality_of({}), 0.5);
    EXPECT_NEAR(quality_of(well), 0.9, 1e-9);
    for (int i = 0; i < 100; ++i)
        std::ignore = estimates.learn("office", "", needs, 0.5, 1);
    EXPECT_LT(quality_of(well), quality_of({}) + 0.06);
    EXPECT_GT(quality_of(well), quality_of({}));
}

}  // namespace
}  // namespace molly::router
