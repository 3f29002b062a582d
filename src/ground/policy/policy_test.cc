#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "domain/texts.h"
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

Rule permit_rule() {
    Rule rule;
    rule.name = "press";
    rule.permit_t3 = true;
    return rule;
}

/// A request that detectors have looked at and found nothing in.
AnnotatedRequest searched(Sensitivity sensitivity) {
    AnnotatedRequest annotated = request_of(sensitivity);
    domain::for_each_text(annotated.request, [&](const std::string&, domain::TextForm) {
        annotated.findings.emplace_back();
    });
    annotated.detection_complete = true;
    return annotated;
}

TEST(PolicyT3, APermitOpensStandardAndPublicToTheRedactedFormAlone) {
    for (const Sensitivity sensitivity : {Sensitivity::public_, Sensitivity::standard}) {
        const auto permit = decide(permit_rule(), searched(sensitivity));
        ASSERT_TRUE(permit);
        EXPECT_EQ(permit->t3(), T3Closed::open);
        EXPECT_EQ(to_string(permit->tiers()), "T0 T1 T2 T3");
        EXPECT_EQ(permit->rule(), "press");
        // As it stands it goes nowhere near: this is what a socket asks.
        EXPECT_FALSE(permit->allows(Tier::t3));
        EXPECT_FALSE(permit->check(*target_of(Tier::t3)));
        EXPECT_TRUE(permit->check_form(*target_of(Tier::t3)));
    }
}

TEST(PolicyT3, PrivateNeedsARuleThatCountsItsRedactedFormAsStandard) {
    const auto closed = decide(permit_rule(), searched(Sensitivity::private_));
    ASSERT_TRUE(closed);
    EXPECT_EQ(closed->t3(), T3Closed::private_);
    Rule rule = permit_rule();
    rule.redacted_counts_as = Sensitivity::standard;
    const auto open = decide(rule, searched(Sensitivity::private_));
    ASSERT_TRUE(open);
    EXPECT_EQ(open->t3(), T3Closed::open);
    // What it is as it stands does not change.
    EXPECT_FALSE(open->allows(Tier::t2));
    EXPECT_EQ(decide(rule, searched(Sensitivity::secret))->t3(), T3Closed::secret);
}

TEST(PolicyT3, ThePermitMayBeWrittenForStandardWhileAnotherRuleLowersTheRedactedForm) {
    Rule lowers;
    lowers.name = "case-42";
    lowers.conversations = {"ada/case-42"};
    lowers.redacted_counts_as = Sensitivity::standard;
    Rule permits = permit_rule();
    permits.at_most = Sensitivity::standard;
    const PolicyEngine engine({.rules = {permits, lowers}});
    AnnotatedRequest annotated = searched(Sensitivity::private_);
    EXPECT_EQ(engine.decide(annotated)->t3(), T3Closed::private_);
    annotated.conversation = "ada/case-42";
    EXPECT_EQ(engine.decide(annotated)->t3(), T3Closed::open);
    // The same id of another member is another conversation.
    annotated.conversation = "bob/case-42";
    EXPECT_EQ(engine.decide(annotated)->t3(), T3Closed::private_);
}

TEST(PolicyT3, IncompleteDetectionClosesItAndSaysSo) {
    AnnotatedRequest annotated = searched(Sensitivity::standard);
    annotated.detection_complete = false;
    const auto absent = decide(permit_rule(), annotated);
    ASSERT_TRUE(absent);
    EXPECT_EQ(absent->t3(), T3Closed::detection);
    const auto checked = absent->check_form(*target_of(Tier::t3));
    ASSERT_FALSE(checked);
    EXPECT_EQ(checked.error().code(), ErrorCode::denied);
    EXPECT_EQ(checked.error().reason(), "detection_incomplete");
    EXPECT_THAT(checked.error().message(), HasSubstr("detectors"));
    EXPECT_THAT(checked.error().message_italian(), HasSubstr("rivelatori"));
    // A text that nobody has looked at is the same.
    annotated.detection_complete = true;
    annotated.findings.pop_back();
    EXPECT_EQ(decide(permit_rule(), annotated)->t3(), T3Closed::detection);
}

TEST(PolicyT3, ARuleOrAKeyKeepsContentFromIt) {
    Rule keeps = rule_of({Tier::t0, Tier::t1});
    const PolicyEngine engine({.rules = {permit_rule(), keeps}});
    EXPECT_EQ(engine.decide(searched(Sensitivity::standard))->t3(), T3Closed::kept);
    AnnotatedRequest annotated = searched(Sensitivity::standard);
    annotated.request.caller.tiers = {Tier::t0, Tier::t2};
    EXPECT_EQ(decide(permit_rule(), annotated)->t3(), T3Closed::kept);
}

TEST(PolicyT3, APermitForAJurisdictionReachesTargetsThereOnly) {
    Rule rule = permit_rule();
    rule.jurisdictions = {"EU"};
    const auto permit = decide(rule, searched(Sensitivity::standard));
    ASSERT_TRUE(permit);
    EXPECT_TRUE(permit->check_form(*target_of(Tier::t3, "IT")));
    EXPECT_FALSE(permit->check_form(*target_of(Tier::t3, "US")));
    EXPECT_FALSE(permit->check_form(*target_of(Tier::t3)));
}

TEST(PolicyT3, ResidencyBindsTheRedactedFormToo) {
    AnnotatedRequest annotated = searched(Sensitivity::standard);
    annotated.label.residency = Residency({"IT"});
    const auto permit = decide(permit_rule(), annotated);
    ASSERT_TRUE(permit);
    EXPECT_FALSE(permit->check_form(*target_of(Tier::t3, "US")));
    EXPECT_TRUE(permit->check_form(*target_of(Tier::t3, "IT")));
}

TEST(Policy, ARestrictionForAJurisdictionConcernsTargetsThereAndUndeclaredOnes) {
    Rule rule = rule_of({Tier::t0, Tier::t1});
    rule.jurisdictions = {"US"};
    const auto permit = decide(rule, request_of(Sensitivity::standard));
    ASSERT_TRUE(permit);
    EXPECT_FALSE(permit->check(*target_of(Tier::t2, "US")));
    EXPECT_FALSE(permit->check(*target_of(Tier::t2)));
    EXPECT_TRUE(permit->check(*target_of(Tier::t2, "DE")));
    EXPECT_TRUE(permit->check(*target_of(Tier::t1, "US")));
}

TEST(Policy, WhileTheTimeIsUnknownRestrictionsHoldAndPermitsDoNot) {
    const auto hours = hours_from("08:00-19:00", {"mon"}, "Europe/Rome");
    ASSERT_TRUE(hours);
    const WallTime monday_noon =
        std::chrono::sys_days(std::chrono::year(2026) / 11 / 30) + std::chrono::hours(11);
    Rule permits = permit_rule();
    permits.hours = *hours;
    AnnotatedRequest annotated = searched(Sensitivity::standard);
    EXPECT_EQ(decide(permits, annotated)->t3(), T3Closed::no_permit);
    annotated.time = monday_noon;
    EXPECT_EQ(decide(permits, annotated)->t3(), T3Closed::open);
    annotated.time = monday_noon + std::chrono::hours(24);
    EXPECT_EQ(decide(permits, annotated)->t3(), T3Closed::no_permit);
    Rule restricts = rule_of({Tier::t0});
    restricts.hours = *hours;
    EXPECT_EQ(to_string(decide(restricts, annotated)->tiers()), "T0 T1 T2");
    annotated.time = monday_noon;
    EXPECT_EQ(to_string(decide(restricts, annotated)->tiers()), "T0");
    annotated.time = WallTime{};
    EXPECT_EQ(to_string(decide(restricts, annotated)->tiers()), "T0");
}

TEST(Policy, ARuleForSomeClassesLeavesTheOthersAlone) {
    Rule rule = rule_of({Tier::t0});
    rule.classes = {Sensitivity::public_, Sensitivity::private_};
    EXPECT_EQ(to_string(decide(rule, request_of(Sensitivity::private_))->tiers()), "T0");
    EXPECT_EQ(to_string(decide(rule, request_of(Sensitivity::standard))->tiers()), "T0 T1 T2");
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
