#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policy/policy_engine.h"

namespace molly::policy {
namespace {

using domain::AnnotatedRequest;
using domain::Residency;
using domain::Sensitivity;
using domain::TargetSpec;
using domain::Tier;
using domain::TierSet;
using testing::HasSubstr;

AnnotatedRequest request_of(Sensitivity sensitivity, Residency residency = {}) {
    AnnotatedRequest annotated;
    annotated.label.sensitivity = sensitivity;
    annotated.label.residency = std::move(residency);
    annotated.request.caller.member = "ada";
    annotated.request.caller.app = "mail";
    annotated.request.caller.key_id = "k1";
    annotated.request.extensions.purpose = "draft";
    annotated.request.extensions.tags = {"hr", "it"};
    return annotated;
}

std::shared_ptr<const TargetSpec> target_of(Tier tier, std::string jurisdiction = "") {
    TargetSpec spec;
    spec.id = "box";
    spec.tier = tier;
    spec.jurisdiction = std::move(jurisdiction);
    return std::make_shared<const TargetSpec>(std::move(spec));
}

Result<Permit> decide(const Rule& rule, const AnnotatedRequest& annotated) {
    return PolicyEngine({.rules = {rule}}).decide(annotated);
}

Rule rule_of(TierSet tiers) {
    Rule rule;
    rule.name = "office";
    rule.tiers = tiers;
    return rule;
}

TEST(Policy, ClassAloneDecidesWhereNoRuleSpeaks) {
    const PolicyEngine engine(Options{});
    const std::pair<Sensitivity, std::string_view> cases[] = {{Sensitivity::secret, "T0"},
                                                              {Sensitivity::private_, "T0 T1"},
                                                              {Sensitivity::standard, "T0 T1 T2"},
                                                              {Sensitivity::public_, "T0 T1 T2"}};
    for (const auto& [sensitivity, tiers] : cases) {
        const auto permit = engine.decide(request_of(sensitivity));
        ASSERT_TRUE(permit);
        EXPECT_EQ(to_string(permit->tiers()), tiers);
        EXPECT_EQ(permit->rule(), "class-" + std::string(to_string(sensitivity)));
    }
}

TEST(Policy, RulesOnlyRestrict) {
    const auto narrowed = decide(rule_of({Tier::t0}), request_of(Sensitivity::standard));
    ASSERT_TRUE(narrowed);
    EXPECT_EQ(to_string(narrowed->tiers()), "T0");
    EXPECT_EQ(narrowed->rule(), "office");
    // A rule that names more than the class permits does not widen it.
    const auto wide = decide(rule_of({Tier::t0, Tier::t1, Tier::t2, Tier::t3}),
                             request_of(Sensitivity::private_));
    ASSERT_TRUE(wide);
    EXPECT_EQ(to_string(wide->tiers()), "T0 T1");
}

TEST(Policy, PermitForT3OpensNothingWithoutARedactor) {
    Rule rule = rule_of({Tier::t0, Tier::t1, Tier::t2, Tier::t3});
    rule.permit_t3 = true;
    for (const Sensitivity sensitivity :
         {Sensitivity::public_, Sensitivity::standard, Sensitivity::private_}) {
        const auto permit = decide(rule, request_of(sensitivity));
        ASSERT_TRUE(permit);
        EXPECT_FALSE(permit->allows(Tier::t3));
        const auto checked = permit->check(*target_of(Tier::t3));
        ASSERT_FALSE(checked);
        EXPECT_THAT(checked.error().message(), HasSubstr("no redactor is loaded"));
    }
}

TEST(Policy, RuleAppliesWhenAllItsConditionsMatch) {
    const auto applied = [](auto change) {
        Rule rule = rule_of({Tier::t0});
        change(rule);
        const auto permit = decide(rule, request_of(Sensitivity::standard));
        return permit && permit->rule() == "office";
    };
    EXPECT_TRUE(applied([](Rule&) {}));
    EXPECT_TRUE(applied([](Rule& rule) { rule.members = {"bob", "ada"}; }));
    EXPECT_FALSE(applied([](Rule& rule) { rule.members = {"bob"}; }));
    EXPECT_TRUE(applied([](Rule& rule) { rule.apps = {"mail"}; }));
    EXPECT_FALSE(applied([](Rule& rule) { rule.apps = {"chat"}; }));
    EXPECT_TRUE(applied([](Rule& rule) { rule.tags = {"x", "it"}; }));
    EXPECT_FALSE(applied([](Rule& rule) { rule.tags = {"x"}; }));
    EXPECT_TRUE(applied([](Rule& rule) { rule.purposes = {"draft"}; }));
    EXPECT_FALSE(applied([](Rule& rule) { rule.purposes = {"send"}; }));
    EXPECT_TRUE(applied([](Rule& rule) { rule.at_most = Sensitivity::standard; }));
    EXPECT_FALSE(applied([](Rule& rule) { rule.at_most = Sensitivity::public_; }));
    EXPECT_TRUE(applied([](Rule& rule) { rule.at_least = Sensitivity::standard; }));
    EXPECT_FALSE(applied([](Rule& rule) { rule.at_least = Sensitivity::private_; }));
    EXPECT_FALSE(applied([](Rule& rule) {
        rule.members = {"ada"};
        rule.apps = {"chat"};
    }));
}

TEST(Policy, KeyNarrowsTheTiersAndSaysSo) {
    AnnotatedRequest annotated = request_of(Sensitivity::standard);
    annotated.request.caller.tiers = {Tier::t1};
    const auto permit = PolicyEngine(Options{}).decide(annotated);
    ASSERT_TRUE(permit);
    EXPECT_EQ(to_string(permit->tiers()), "T1");
    EXPECT_EQ(permit->rule(), "class-standard+key-k1");
    annotated.label.sensitivity = Sensitivity::secret;
    const auto nothing = PolicyEngine(Options{}).decide(annotated);
    ASSERT_FALSE(nothing);
    EXPECT_EQ(nothing.error().code(), ErrorCode::denied);
    EXPECT_EQ(nothing.error().reason(), "no_tier_permitted");
}

TEST(Policy, EmptyResidencyIsARefusalThatSaysSo) {
    Rule rule;
    rule.name = "italy";
    rule.residency = Residency({"IT"});
    const auto permit = decide(rule, request_of(Sensitivity::private_, Residency({"EU"})));
    ASSERT_TRUE(permit);
    EXPECT_EQ(to_string(permit->residency()), "IT");
    const auto nowhere = decide(rule, request_of(Sensitivity::private_, Residency({"US"})));
    ASSERT_FALSE(nowhere);
    EXPECT_EQ(nowhere.error().code(), ErrorCode::denied);
    EXPECT_EQ(nowhere.error().reason(), "residency_empty");
    EXPECT_THAT(nowhere.error().message(), HasSubstr("italy"));
    EXPECT_THAT(nowhere.error().message_italian(), HasSubstr("residenza"));
}

TEST(Permit, DenialNamesTheRuleAndTheTarget) {
    const PolicyEngine engine(Options{});
    const auto permit = engine.decide(request_of(Sensitivity::private_, Residency({"EU"})));
    ASSERT_TRUE(permit);
    EXPECT_TRUE(permit->check(*target_of(Tier::t1, "IT")));
    const auto tier = permit->check(*target_of(Tier::t2, "IT"));
    ASSERT_FALSE(tier);
    EXPECT_EQ(tier.error().code(), ErrorCode::denied);
    EXPECT_EQ(tier.error().reason(), "tier_not_permitted");
    EXPECT_EQ(tier.error().message(), "rule class-private permits T0 T1; target box is T2");
    EXPECT_THAT(tier.error().message_italian(), HasSubstr("destinazione box"));
    const auto place = permit->check(*target_of(Tier::t1, "US"));
    ASSERT_FALSE(place);
    EXPECT_EQ(place.error().reason(), "residency_not_permitted");
    EXPECT_EQ(place.error().message(),
              "rule class-private keeps this content in EU; target box declares US");
    const auto undeclared = permit->check(*target_of(Tier::t0));
    ASSERT_FALSE(undeclared);
    EXPECT_THAT(undeclared.error().message(), HasSubstr("declares no jurisdiction"));
}

TEST(Permit, NarrowingKeepsWhatBothAllow) {
    const PolicyEngine engine(Options{});
    const auto a = engine.decide(request_of(Sensitivity::standard, Residency({"EU"})));
    const auto b = engine.decide(request_of(Sensitivity::private_, Residency({"IT", "US"})));
    ASSERT_TRUE(a && b);
    const Permit both = a->narrowed(*b);
    EXPECT_EQ(to_string(both.tiers()), "T0 T1");
    EXPECT_EQ(to_string(both.residency()), "IT");
    EXPECT_EQ(both.rule(), "class-standard+class-private");
}

TEST(Dispatch, IsMadeOnlyForAPermittedTarget) {
    auto cleared = PolicyEngine(Options{}).clear(request_of(Sensitivity::private_));
    ASSERT_TRUE(cleared);
    const auto shared = std::make_shared<const ClearedRequest>(*std::move(cleared));
    const auto allowed = Dispatch::to(target_of(Tier::t1), "law", shared);
    ASSERT_TRUE(allowed);
    EXPECT_EQ(allowed->target().id, "box");
    EXPECT_EQ(allowed->adapter(), "law");
    EXPECT_EQ(allowed->request().caller.member, "ada");
    const auto denied = Dispatch::to(target_of(Tier::t2), "", shared);
    ASSERT_FALSE(denied);
    EXPECT_EQ(denied.error().code(), ErrorCode::denied);
}

TEST(Policy, OnlyPublicArtifactsMayGoToT3) {
    const PolicyEngine engine(Options{});
    for (const auto& [sensitivity, open] :
         {std::pair(Sensitivity::public_, true), std::pair(Sensitivity::standard, false),
          std::pair(Sensitivity::private_, false), std::pair(Sensitivity::secret, false)}) {
        ArtifactLabel artifact;
        artifact.purpose = "models.pull";
        artifact.label.sensitivity = sensitivity;
        const auto permit = engine.clear_artifact(artifact);
        ASSERT_TRUE(permit);
        EXPECT_EQ(permit->allows(Tier::t3), open);
        EXPECT_EQ(permit->rule(), "artifact-models.pull");
    }
}

}  // namespace
}  // namespace molly::policy
