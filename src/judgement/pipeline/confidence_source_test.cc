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
