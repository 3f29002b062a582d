#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline/internal/pipeline_fixture.h"

namespace molly::pipeline {
namespace {

using namespace scripted;  // NOLINT(google-build-using-namespace): the cast of these tests
using domain::Outcome;
using domain::Sensitivity;
using domain::Tier;
using testing::Contains;
using testing::HasSubstr;

class AdapterLabelTest : public PipelineTest {
protected:
    ScriptedTarget& home_with(domain::Label label, Script script = says("ecco")) {
        ScriptedTarget& home = add("home", Tier::t0, 0.5, std::move(script));
        home.versions = {{"law", "law@1.0.0"}, {"law@1.0.0", "law@1.0.0"}};
        home.adapter_labels["law@1.0.0"] = std::move(label);
        return home;
    }
    static domain::Label label(Sensitivity sensitivity) {
        domain::Label label;
        label.sensitivity = sensitivity;
        label.origins = {"corpus:contracts"};
        return label;
    }
    domain::Request to_adapter(std::string model = "home/law") {
        domain::Request asked = request();
        asked.model = std::move(model);
        return asked;
    }
};

TEST_F(AdapterLabelTest, AnAnswerCarriesWhatItsAdapterLearnedFrom) {
    domain::Label secret = label(Sensitivity::secret);
    secret.residency = domain::Residency({"IT"});
    jurisdiction = "IT";
    home_with(secret);
    ASSERT_TRUE(run(to_adapter()));
    EXPECT_EQ(trace().label.sensitivity, Sensitivity::secret);
    EXPECT_EQ(trace().label.residency, domain::Residency({"IT"}));
    EXPECT_THAT(trace().label.origins, Contains("corpus:contracts"));
    EXPECT_EQ(trace().signals.back().source, "adapter:law@1.0.0");
    EXPECT_EQ(store.labels.at(trace().conversation), trace().label);
}

TEST_F(AdapterLabelTest, ItSticksToTheConversationAndKeepsItHome) {
    home_with(label(Sensitivity::secret));
    ScriptedTarget& office = add("office", Tier::t1, 0.9, says("dall'ufficio"));
    ASSERT_TRUE(run(request()));
    EXPECT_EQ(trace().target, "office");
    ASSERT_TRUE(run(to_adapter()));
    ASSERT_TRUE(run(request()));
    EXPECT_EQ(trace().target, "home");
    EXPECT_EQ(office.attempts, 1);
}

TEST_F(AdapterLabelTest, AnAnswerThatBrokeOffCarriesItToo) {
    Script dying = fails(ErrorCode::upstream_failed);
    dying.deltas.push_back(piece("metà"));
    home_with(label(Sensitivity::secret), dying);
    ASSERT_FALSE(run(to_adapter()));
    EXPECT_EQ(trace().outcome, Outcome::truncated);
    EXPECT_EQ(trace().label.sensitivity, Sensitivity::secret);
}

TEST_F(AdapterLabelTest, WhatNeverAnsweredRaisesNothing) {
    home_with(label(Sensitivity::secret), fails(ErrorCode::internal));
    ASSERT_FALSE(run(to_adapter()));
    EXPECT_EQ(trace().label.sensitivity, Sensitivity::private_);
}

TEST_F(AdapterLabelTest, ALowerLabelLowersNothing) {
    home_with(label(Sensitivity::public_));
    ASSERT_TRUE(run(to_adapter()));
    EXPECT_EQ(trace().label.sensitivity, Sensitivity::private_);
    EXPECT_THAT(trace().label.origins, Contains("corpus:contracts"));
}

TEST_F(AdapterLabelTest, ARuleThatKeepsAMemberFromSecretsKeepsHerFromTheAdapter) {
    policy::Rule guests;
    guests.name = "guests";
    guests.members = {"anna"};
    guests.at_least = Sensitivity::secret;
    guests.tiers = domain::TierSet{Tier::t1};
    rules.rules = {guests};
    ScriptedTarget& home = home_with(label(Sensitivity::secret));
    ASSERT_TRUE(run(request()));
    const auto refused = run(to_adapter());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::denied);
    EXPECT_THAT(refused.error().message(), HasSubstr("guests"));
    EXPECT_EQ(trace().outcome, Outcome::refused);
    EXPECT_THAT(trace().decision.candidates.front().excluded_by, HasSubstr("learned from secret"));
    EXPECT_EQ(home.attempts, 1);
}

TEST_F(AdapterLabelTest, PlacesThatExcludeEachOtherAreARefusal) {
    domain::Label french = label(Sensitivity::private_);
    french.residency = domain::Residency({"FR"});
    jurisdiction = "IT";
    ScriptedTarget& home = home_with(french);
    domain::Request italian = to_adapter();
    italian.extensions.residency = domain::Residency({"IT"});
    EXPECT_EQ(run(italian).error().code(), ErrorCode::denied);
    EXPECT_EQ(run(to_adapter()).error().code(), ErrorCode::denied);
    EXPECT_EQ(home.attempts, 0);
}

TEST_F(AdapterLabelTest, TheVersionThatAnswersCountsNotThePlannedOne) {
    ScriptedTarget& home = home_with(label(Sensitivity::private_));
    domain::Label french = label(Sensitivity::private_);
    french.residency = domain::Residency({"FR"});
    home.adapter_labels["law@2.0.0"] = french;
    // Promoted after the plan was made.
    ledger.on_reserve = [&] { home.versions["law"] = home.versions["law@2.0.0"] = "law@2.0.0"; };
    EXPECT_EQ(run(to_adapter()).error().code(), ErrorCode::denied);
    EXPECT_EQ(home.attempts, 0);
}

}  // namespace
}  // namespace molly::pipeline
