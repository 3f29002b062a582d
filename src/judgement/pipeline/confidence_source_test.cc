// Confidence from more answers, from a verifier, and from what a target says of itself.
#include <gtest/gtest.h>

#include "pipeline/internal/pipeline_fixture.h"

namespace molly::pipeline {
namespace {

using namespace scripted;  // NOLINT(google-build-using-namespace): the cast of these tests
using domain::ConfidenceSource;
using domain::Sensitivity;
using domain::Tier;

class ConfidenceSourceTest : public PipelineTest {
protected:
    ScriptedTarget& add_measured(const std::string& id, Tier tier, ConfidenceSource source,
                                 std::vector<std::string> answers,
                                 const std::string& verifier = {}) {
        confidence_min = 0.8;
        measure = {.source = source, .samples = 3, .verifier = verifier};
        ScriptedTarget& target = add(id, tier, 0.9, says(answers.front()));
        target.scripts.clear();
        for (const std::string& answer : answers)
            target.scripts.push_back(says(answer));
        confidence_min = 0;
        measure = {};
        return target;
    }
};

TEST_F(ConfidenceSourceTest, SamplesThatAgreeAreTold) {
    ScriptedTarget& home =
        add_measured("home", Tier::t0, ConfidenceSource::samples, {"Roma", "roma", "Roma."});
    ScriptedTarget& office = add("office", Tier::t1, 0.5, says("mai"));
    const auto answered = run(request());
    ASSERT_TRUE(answered) << answered.error().message();
    EXPECT_EQ(edge.text, "Roma");
    EXPECT_EQ(attempts(), "home answered, sample home rejected, sample home rejected");
    EXPECT_DOUBLE_EQ(trace().attempts[0].confidence.value_or(-1), 1);
    EXPECT_EQ(office.attempts, 0);
    EXPECT_TRUE(answered->response.caveat.empty());
    // The first is drawn as the caller asked, the others never greedily.
    EXPECT_FALSE(home.seen[0].sampling.temperature);
    EXPECT_GT(home.seen[1].sampling.temperature.value_or(0), 0);
}

TEST_F(ConfidenceSourceTest, OfSamplesTheOneThatTheOthersAgreeWithIsTold) {
    confidence_min = 0.4;
    measure = {.source = ConfidenceSource::samples, .samples = 3, .verifier = {}};
    ScriptedTarget& home = add("home", Tier::t0, 0.9, says("Parigi"));
    home.scripts = {says("Parigi"), says("Roma"), says("roma")};
    confidence_min = 0;
    measure = {};
    add("office", Tier::t1, 0.5, says("mai"));
    const auto answered = run(request());
    ASSERT_TRUE(answered) << answered.error().message();
    EXPECT_EQ(edge.text, "Roma");
    EXPECT_EQ(attempts(), "home rejected, sample home answered, sample home rejected");
    EXPECT_DOUBLE_EQ(trace().attempts[1].confidence.value_or(-1), 0.5);
}

TEST_F(ConfidenceSourceTest, SamplesThatDifferGoUpAndAllOfThemArePaid) {
    price = domain::Money{1000};
    add_measured("home", Tier::t0, ConfidenceSource::samples, {"uno", "due", "tre"});
    add("office", Tier::t1, 0.5, says("sicuro"));
    ASSERT_TRUE(run(request()).has_value());
    EXPECT_EQ(edge.text, "sicuro");
    EXPECT_EQ(attempts(),
              "home rejected, sample home rejected, sample home rejected, office answered");
    domain::Money sum;
    for (const domain::Attempt& line : trace().attempts)
        sum += line.cost;
    EXPECT_EQ(trace().cost, sum);
    EXPECT_EQ(ledger.cost, sum);
    EXPECT_EQ(trace().usage, trace().attempts[3].usage);
    ASSERT_EQ(store.appended.size(), 1U);
}

TEST_F(ConfidenceSourceTest, NobodyIsAskedTwiceWhereNothingCouldBeRejected) {
    ScriptedTarget& home =
        add_measured("home", Tier::t0, ConfidenceSource::samples, {"uno", "due"});
    ASSERT_TRUE(run(request()).has_value());
    EXPECT_EQ(home.attempts, 1);
    EXPECT_EQ(edge.deltas, 2);
}

TEST_F(ConfidenceSourceTest, ALimitThatHasNoRoomForSamplesGetsOneAnswer) {
    price = domain::Money{1000};
    ScriptedTarget& home =
        add_measured("home", Tier::t0, ConfidenceSource::samples, {"uno", "due", "tre"});
    ScriptedTarget& office = add("office", Tier::t1, 0.5, says("mai"));
    auto asked = request();
    asked.sampling.answer_tokens_max = 100;
    asked.extensions.cost_max = domain::Money{250'000};  // two answers of 100 tokens
    ASSERT_TRUE(run(std::move(asked)).has_value());
    EXPECT_EQ(home.attempts, 1);
    EXPECT_EQ(office.attempts, 0);
}

TEST_F(ConfidenceSourceTest, AVerifierSaysWhatAnAnswerIsWorth) {
    add_measured("home", Tier::t0, ConfidenceSource::verifier, {"forse"}, "judge");
    ScriptedTarget& judge = add("judge", Tier::t0, 0.1, says("30"));
    add("office", Tier::t1, 0.5, says("sicuro"));
    ASSERT_TRUE(run(request("quanto fa due più due")).has_value());
    EXPECT_EQ(edge.text, "sicuro");
    EXPECT_EQ(attempts(), "home rejected, verification judge answered, office answered");
    EXPECT_DOUBLE_EQ(trace().attempts[0].confidence.value_or(-1), 0.3);
    EXPECT_EQ(trace().target, "office");
    ASSERT_EQ(judge.seen.size(), 1U);
    const std::string question = text_of(judge.seen[0].messages.back());
    EXPECT_NE(question.find("quanto fa due"), std::string::npos);
    EXPECT_NE(question.find("forse"), std::string::npos);
}

TEST_F(ConfidenceSourceTest, AVerifierThatIsContentLetsTheAnswerGo) {
    add_measured("home", Tier::t0, ConfidenceSource::verifier, {"certo"}, "judge");
    add("judge", Tier::t0, 0.1, says("95 of 100"));
    ScriptedTarget& office = add("office", Tier::t1, 0.5, says("mai"));
    const auto answered = run(request());
    ASSERT_TRUE(answered) << answered.error().message();
    EXPECT_EQ(edge.text, "certo");
    EXPECT_EQ(office.attempts, 0);
    // The verifier's line is no answer of the caller's.
    EXPECT_EQ(trace().target, "home");
    EXPECT_EQ(answered->served.target, "home");
    EXPECT_EQ(trace().usage, trace().attempts[0].usage);
}

TEST_F(ConfidenceSourceTest, AVerifierIsAskedOnlyWhereTheLabelPermits) {
    add_measured("home", Tier::t0, ConfidenceSource::verifier, {"segreto"}, "judge");
    ScriptedTarget& judge = add("judge", Tier::t2, 0.1, says("1"));
    ScriptedTarget& office = add("office", Tier::t1, 0.5, says("mai"));
    const auto answered = run(request());  // private: T0 and T1
    ASSERT_TRUE(answered) << answered.error().message();
    EXPECT_EQ(judge.attempts, 0);
    // Nothing was measured, so nothing is doubted.
    EXPECT_EQ(edge.text, "segreto");
    EXPECT_EQ(office.attempts, 0);
    EXPECT_FALSE(trace().attempts[0].confidence);
}

TEST_F(ConfidenceSourceTest, WhatAnAnswerHoldsLabelsTheVerifiersQuestion) {
    // The request is standard and may go to T2; the answer holds an account number: private.
    add_measured("home", Tier::t0, ConfidenceSource::verifier,
                 {"Il suo IBAN è IT60X0542811101000000123456"}, "judge");
    ScriptedTarget& judge = add("judge", Tier::t2, 0.1, says("1"));
    add("office", Tier::t1, 0.5, says("mai"));
    auto asked = request();
    asked.caller.lowest_class = Sensitivity::standard;
    asked.extensions.sensitivity = Sensitivity::standard;
    ASSERT_TRUE(run(std::move(asked)).has_value());
    EXPECT_EQ(judge.attempts, 0);
    EXPECT_NE(edge.text.find("IBAN"), std::string::npos);
}

TEST_F(ConfidenceSourceTest, AVerifierIsAskedOnlyWithinTheKeysScope) {
    add_measured("home", Tier::t0, ConfidenceSource::verifier, {"forse"}, "judge");
    ScriptedTarget& judge = add("judge", Tier::t0, 0.1, says("1"));
    add("office", Tier::t1, 0.5, says("mai"));
    auto asked = request();
    asked.caller.models = {"home", "office"};
    ASSERT_TRUE(run(std::move(asked)).has_value());
    EXPECT_EQ(judge.attempts, 0);
    EXPECT_EQ(edge.text, "forse");
}

TEST_F(ConfidenceSourceTest, AVerifierThatSaysNoNumberOrFailsMeasuresNothing) {
    add_measured("home", Tier::t0, ConfidenceSource::verifier, {"forse"}, "judge");
    ScriptedTarget& judge = add("judge", Tier::t0, 0.1, says("surely"));
    judge.scripts.push_back(fails(ErrorCode::unavailable));
    ScriptedTarget& office = add("office", Tier::t1, 0.5, says("mai"));
    ASSERT_TRUE(run(request()).has_value());
    EXPECT_EQ(attempts(), "home answered, verification judge answered");
    ASSERT_TRUE(run(request()).has_value());
    EXPECT_EQ(attempts(), "home answered, verification judge unavailable");
    EXPECT_EQ(office.attempts, 0);
}

TEST_F(ConfidenceSourceTest, TheVerifiersPriceCounts) {
    add_measured("home", Tier::t0, ConfidenceSource::verifier, {"forse"}, "judge");
    price = domain::Money{1000};
    add("judge", Tier::t1, 0.1, says("30"));
    price = {};
    add("office", Tier::t1, 0.5, says("sicuro"));
    ASSERT_TRUE(run(request()).has_value());
    EXPECT_EQ(attempts(), "home rejected, verification judge answered, office answered");
    EXPECT_GT(trace().attempts[1].cost.nano, 0);
    EXPECT_EQ(trace().cost, trace().attempts[1].cost);
    EXPECT_EQ(ledger.cost, trace().cost);
}

TEST_F(ConfidenceSourceTest, WhatAVerifierSaysIsEvidence) {
    estimates = std::make_unique<router::Estimates>(router::EstimateOptions(), clock);
    add_measured("home", Tier::t0, ConfidenceSource::verifier, {"forse"}, "judge");
    add("judge", Tier::t0, 0.1, says("30"));
    add("office", Tier::t1, 0.5, says("sicuro"));
    ASSERT_TRUE(run(request()).has_value());
    EXPECT_EQ(trace().attempts[0].confidence_from, ConfidenceSource::verifier);
    const auto rows = estimates->rows();
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_EQ(rows[0].target, "home");
    EXPECT_NEAR(rows[0].mean, 0.3, 1e-9);
    EXPECT_NEAR(rows[0].weight, routing.verifier_weight, 1e-9);
    EXPECT_LT(routing.verifier_weight, 1);  // of a person's
    ASSERT_EQ(store.estimate_rows.size(), 1U);
    EXPECT_EQ(store.estimate_rows[0].target, "home");
    EXPECT_NEAR(store.estimate_rows[0].weight, routing.verifier_weight, 1e-9);
}

TEST_F(ConfidenceSourceTest, AVerifiersNumberIsEvidenceOfWhatItWasWorth) {
    estimates = std::make_unique<router::Estimates>(router::EstimateOptions(), clock);
    confidences = std::make_unique<router::Confidences>(router::EstimateOptions(), clock);
    // Whom this verifier was content with, people were not.
    const router::Meter meter{.target = "home", .from = ConfidenceSource::verifier};
    for (int i = 0; i < 200; ++i)
        std::ignore = confidences->learn(meter, domain::Field::other, 0.95, 0, 1);
    add_measured("home", Tier::t0, ConfidenceSource::verifier, {"certo"}, "judge");
    add("judge", Tier::t0, 0.1, says("95"));
    add("office", Tier::t1, 0.5, says("sicuro"));
    ASSERT_TRUE(run(request()).has_value());
    EXPECT_EQ(edge.text, "sicuro");
    ASSERT_EQ(estimates->rows().size(), 1U);
    EXPECT_LT(estimates->rows()[0].mean, 0.2);
}

TEST_F(ConfidenceSourceTest, AVerifierWithoutWeightTeachesNothing) {
    estimates = std::make_unique<router::Estimates>(router::EstimateOptions(), clock);
    routing.verifier_weight = 0;
    add_measured("home", Tier::t0, ConfidenceSource::verifier, {"forse"}, "judge");
    add("judge", Tier::t0, 0.1, says("30"));
    add("office", Tier::t1, 0.5, says("sicuro"));
    ASSERT_TRUE(run(request()).has_value());
    EXPECT_TRUE(estimates->rows().empty());
    EXPECT_TRUE(store.estimate_rows.empty());
}

TEST_F(ConfidenceSourceTest, WhatSomebodySaysOfItselfIsNoEvidence) {
    estimates = std::make_unique<router::Estimates>(router::EstimateOptions(), clock);
    add_measured("home", Tier::t0, ConfidenceSource::stated, {"forse", "20"});
    add_measured("attic", Tier::t1, ConfidenceSource::verifier, {"mah", "15"}, "attic");
    add("office", Tier::t2, 0.5, says("sicuro"));
    auto asked = request();
    asked.caller.lowest_class = Sensitivity::standard;
    asked.extensions.sensitivity = Sensitivity::standard;
    ASSERT_TRUE(run(std::move(asked)).has_value());
    EXPECT_EQ(attempts(),
              "home rejected, verification home answered, attic rejected, verification attic "
              "answered, office answered");
    EXPECT_EQ(trace().attempts[2].confidence_from, ConfidenceSource::stated);
    EXPECT_TRUE(estimates->rows().empty());
}

TEST_F(ConfidenceSourceTest, AnAliasMayNameTheVerifierAndHasItsRoom) {
    routing.aliases["checker"] = "judge";
    price = domain::Money{1000};
    add_measured("home", Tier::t0, ConfidenceSource::verifier, {"forse"}, "checker");
    add("judge", Tier::t1, 0.1, says("30"));
    add("office", Tier::t1, 0.5, says("sicuro"));
    auto asked = request();
    asked.sampling.answer_tokens_max = 100;
    ASSERT_TRUE(run(std::move(asked)).has_value());
    EXPECT_EQ(attempts(), "home rejected, verification judge answered, office answered");
    // Two answers of 100 tokens and a number of 8.
    EXPECT_EQ(ledger.cost_asked, domain::Money{208'000});
}

TEST_F(ConfidenceSourceTest, AnybodyIsNoVerifier) {
    routing.aliases["checker"] = "auto";
    ScriptedTarget& home =
        add_measured("home", Tier::t0, ConfidenceSource::verifier, {"forse"}, "checker");
    add("office", Tier::t1, 0.5, says("mai"));
    ASSERT_TRUE(run(request()).has_value());
    EXPECT_EQ(home.attempts, 1);
    EXPECT_EQ(attempts(), "home answered");
}

TEST_F(ConfidenceSourceTest, JudgementsOfTwoSourcesStayApart) {
    estimates = std::make_unique<router::Estimates>(router::EstimateOptions(), clock);
    confidences = std::make_unique<router::Confidences>(router::EstimateOptions(), clock);
    add_measured("home", Tier::t0, ConfidenceSource::verifier, {"certo"}, "judge");
    add("judge", Tier::t0, 0.1, says("95"));
    add("office", Tier::t1, 0.5, says("mai"));
    ASSERT_TRUE(run(request()).has_value());
    boost::asio::io_context io;
    spawn(io.get_executor(), [&]() -> Task<void> {
        EXPECT_TRUE((co_await pipeline().judge(trace(), 0)).has_value());
    });
    io.run();
    ASSERT_EQ(confidences->rows().size(), 1U);
    EXPECT_EQ(confidences->rows()[0].meter.from, ConfidenceSource::verifier);
    EXPECT_EQ(store.estimate_rows.back().band, "sure9:verifier");
    EXPECT_DOUBLE_EQ(confidences->at({.target = "home"}, trace().capability.field(), 0.95), 0.95);
}

TEST_F(ConfidenceSourceTest, WhatATargetSaysOfItself) {
    ScriptedTarget& home =
        add_measured("home", Tier::t0, ConfidenceSource::stated, {"forse", "20"});
    add("office", Tier::t1, 0.5, says("sicuro"));
    ASSERT_TRUE(run(request()).has_value());
    EXPECT_EQ(home.attempts, 2);
    EXPECT_EQ(attempts(), "home rejected, verification home answered, office answered");
    EXPECT_DOUBLE_EQ(trace().attempts[0].confidence.value_or(-1), 0.2);
}

}  // namespace
}  // namespace molly::pipeline
