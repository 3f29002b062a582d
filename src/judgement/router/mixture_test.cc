#include <gtest/gtest.h>

#include "policy/policy_engine.h"
#include "router/router.h"

namespace molly::router {
namespace {

using domain::Field;
using domain::Tier;

class MixturePlanTest : public ::testing::Test {
protected:
    MixturePlanTest() {
        auto home = std::make_shared<domain::TargetSpec>();
        home->id = "home";
        home->tier = Tier::t0;
        home->quality = 0.3;
        home->tokens_per_second = 1000;
        for (const auto& [adapter, field, quality] :
             {std::tuple{"art", Field::arts, 0.9}, std::tuple{"law", Field::humanities, 0.7},
              std::tuple{"med", Field::medicine, 0.8}, std::tuple{"tax", Field::finance, 0.8}}) {
            domain::Specialist one;
            one.adapter = adapter;
            one.field = field;
            one.quality = quality;
            one.threshold = 0.5;
            home->specialists.push_back(std::move(one));
            home_view_.adapters.emplace_back(adapter);
        }
        spec_ = home;
        home_view_.spec = home;
        office_.spec = std::make_shared<const domain::TargetSpec>([] {
            domain::TargetSpec office;
            office.id = "office";
            office.tier = Tier::t1;
            office.quality = 0.95;
            return office;
        }());
        is_about({{Field::medicine, 0.35F}, {Field::finance, 0.3F}, {Field::arts, 0.25F}});
    }

    void is_about(const std::vector<std::pair<Field, float>>& fields) {
        asked_.capability.classified = true;
        asked_.capability.fields = {};
        for (const auto& [field, share] : fields)
            asked_.capability.fields[static_cast<std::size_t>(field)] = share;
    }

    /// `med tax art | office ...`
    std::string planned() {
        asked_.request.caller.key_id = "k";
        asked_.capability.prompt_tokens = 100;
        asked_.capability.answer_tokens = 10;
        domain::AnnotatedRequest copy = asked_;
        const auto cleared = policy::PolicyEngine({}).clear(std::move(copy));
        plan_ = {};
        const auto made =
            plan(*cleared, wanted_, {home_view_, office_}, options_, decision_, nullptr, shares_);
        if (!made) return made.error().reason();
        plan_ = *made;
        std::string out;
        for (std::size_t i = 0; i < made->steps.size(); ++i) {
            if (i == made->mixture && i > 0) out += " |";
            const Plan::Step& step = made->steps[i];
            out += (i == 0 ? "" : " ") + (step.adapter.empty() ? step.target->id : step.adapter);
        }
        return out;
    }

    std::shared_ptr<domain::TargetSpec> spec_;
    TargetView home_view_;
    TargetView office_;
    Options options_;
    Wanted wanted_;
    domain::AnnotatedRequest asked_;
    std::vector<SpecialistShare> shares_;
    domain::Decision decision_;
    Plan plan_;
};

TEST_F(MixturePlanTest, AsksTheSpecialistsThatShareTheRequestByWeightTimesQuality) {
    EXPECT_EQ(planned(), "med tax art | office");
    EXPECT_EQ(plan_.mixture, 3U);
    EXPECT_NEAR(plan_.steps[0].weight, 0.35 / 0.9, 1e-6);
    EXPECT_DOUBLE_EQ(plan_.steps[0].quality, 0.8);
    EXPECT_GT(decision_.candidates[2].weight, 0);
    EXPECT_EQ(decision_.candidates[3].weight, 0);
}

TEST_F(MixturePlanTest, AtMostSoManyAndWithinTheAttempts) {
    options_.mixture_max = 2;
    EXPECT_EQ(planned().substr(0, 16), "med tax | office");
    options_.mixture_max = 4;
    options_.attempts_max = 2;
    EXPECT_EQ(planned(), "med tax");
    options_.mixture_max = 1;
    EXPECT_EQ(planned().substr(0, 6), "office");
    EXPECT_EQ(plan_.mixture, 0U);
}

TEST_F(MixturePlanTest, ALikelyDomainIsItsSpecialistsAlone) {
    is_about({{Field::medicine, 0.6F}, {Field::finance, 0.4F}});
    EXPECT_EQ(planned().substr(0, 3), "med");
    EXPECT_EQ(plan_.mixture, 0U);
}

TEST_F(MixturePlanTest, OneAloneOrTooLittleOfTheRequestIsNoMixture) {
    is_about({{Field::medicine, 0.35F}, {Field::science, 0.35F}, {Field::security, 0.3F}});
    EXPECT_EQ(planned().substr(0, 6), "office");
    is_about({{Field::medicine, 0.2F},
              {Field::finance, 0.2F},
              {Field::science, 0.3F},
              {Field::security, 0.3F}});
    EXPECT_EQ(planned().substr(0, 6), "office");
}

TEST_F(MixturePlanTest, OnlyThoseThatClearTheirThresholdAndLimits) {
    spec_->specialists[2].threshold = 0.9;
    EXPECT_EQ(planned(), "tax art | office med");
    spec_->specialists[3].prompt_tokens_max = 50;
    EXPECT_EQ(plan_.mixture, 2U);
    EXPECT_EQ(planned().substr(0, 6), "office");
}

TEST_F(MixturePlanTest, NotWhereSomebodyWasNamedOrToolsAreCalled) {
    wanted_ = {.target = "home", .adapter = {}, .aliased = true};
    std::ignore = planned();
    EXPECT_EQ(plan_.mixture, 0U);
    wanted_ = {.target = {}, .adapter = "med", .aliased = false};
    std::ignore = planned();
    EXPECT_EQ(plan_.mixture, 0U);
    wanted_ = {};
    spec_->capabilities.tools = true;
    asked_.capability.tools = true;
    std::ignore = planned();
    EXPECT_EQ(plan_.mixture, 0U);
}

TEST_F(MixturePlanTest, WhoeverItsPromptsNameGoesFirst) {
    shares_ = {{.target = "home", .adapter = "law", .share = 0.9, .least = 0.5}};
    EXPECT_EQ(planned().substr(0, 3), "law");
    EXPECT_EQ(plan_.mixture, 0U);
    shares_[0].share = 0.1;
    EXPECT_EQ(planned(), "med tax art | office");
}

TEST_F(MixturePlanTest, KeepsTheRequestsLimitOnCost) {
    spec_->prices.per_answer_token = domain::Money{100};
    asked_.request.extensions.cost_max = domain::Money{2500};  // two answers of ten tokens
    std::ignore = planned();
    EXPECT_EQ(plan_.mixture, 0U);
    asked_.request.extensions.cost_max = domain::Money{3000};
    std::ignore = planned();
    EXPECT_EQ(plan_.mixture, 3U);
}

}  // namespace
}  // namespace molly::router
