// Answers that nobody is sure of: they are held back, replaced by the next permitted tier's, or
// told with a caveat.
#include <gtest/gtest.h>

#include "pipeline/internal/pipeline_fixture.h"

namespace molly::pipeline {
namespace {

using namespace scripted;  // NOLINT(google-build-using-namespace): the cast of these tests
using domain::Outcome;
using domain::Sensitivity;
using domain::Tier;

class CascadeTest : public PipelineTest {
protected:
    ScriptedTarget& add_doubtful(const std::string& id, Tier tier, double quality, Script script) {
        confidence_min = 0.8;
        ScriptedTarget& target = add(id, tier, quality, std::move(script));
        confidence_min = 0;
        return target;
    }
};

TEST_F(CascadeTest, ASureAnswerIsToldAndNobodyElseIsAsked) {
    ScriptedTarget& home = add_doubtful("home", Tier::t0, 0.9, says_sure("certo", 0.99));
    ScriptedTarget& office = add("office", Tier::t1, 0.5, says("mai"));
    const auto answered = run(request());
    ASSERT_TRUE(answered) << answered.error().message();
    EXPECT_EQ(edge.text, "certo");
    EXPECT_EQ(office.attempts, 0);
    EXPECT_TRUE(answered->response.caveat.empty());
    ASSERT_TRUE(trace().attempts[0].confidence);
    EXPECT_NEAR(*trace().attempts[0].confidence, 0.99, 1e-3);
    // Asked for by us, told to nobody.
    EXPECT_TRUE(home.seen[0].sampling.logprobs);
    EXPECT_EQ(edge.logprobs, 0U);
    EXPECT_TRUE(answered->response.logprobs.empty());
}

TEST_F(CascadeTest, WhoAsksForLogprobsGetsThem) {
    add_doubtful("home", Tier::t0, 0.9, says_sure("certo", 0.99));
    auto asked = request();
    asked.sampling.logprobs = true;
    ASSERT_TRUE(run(std::move(asked)).has_value());
    EXPECT_EQ(edge.logprobs, 2U);
}

TEST_F(CascadeTest, ADoubtfulAnswerIsNeverSeenAndTheNextTierStreams) {
    add_doubtful("home", Tier::t0, 0.9, says_sure("forse", 0.4));
    add("office", Tier::t1, 0.5, says("sicuro"));
    const auto answered = run(request());
    ASSERT_TRUE(answered) << answered.error().message();
    EXPECT_EQ(edge.text, "sicuro");
    ASSERT_EQ(edge.served.size(), 1U);
    EXPECT_EQ(edge.served[0].target, "office");
    EXPECT_EQ(attempts(), "home rejected, office answered");
    EXPECT_EQ(trace().target, "office");
    EXPECT_EQ(trace().outcome, Outcome::answered);
    EXPECT_TRUE(trace().caveat.empty());
    ASSERT_EQ(store.appended.size(), 1U);
}

TEST_F(CascadeTest, OneRecordHoldsTheWastedAttemptAsALineOfItsOwn) {
    price = domain::Money{1000};
    add_doubtful("home", Tier::t0, 0.9, says_sure("forse", 0.4));
    add("office", Tier::t1, 0.5, says("sicuro"));
    ASSERT_TRUE(run(request()).has_value());
    ASSERT_EQ(trace().attempts.size(), 2U);
    const auto& wasted = trace().attempts[0];
    EXPECT_GT(wasted.usage.answer_tokens, 0U);
    EXPECT_EQ(trace().cost.nano, wasted.cost.nano + trace().attempts[1].cost.nano);
    EXPECT_EQ(trace().usage, trace().attempts[1].usage);
    EXPECT_EQ(ledger.cost.nano, trace().cost.nano);
}

TEST_F(CascadeTest, OnlyAPermittedTierIsNext) {
    add_doubtful("home", Tier::t0, 0.9, says_sure("forse", 0.4));
    ScriptedTarget& rented = add("rented", Tier::t2, 0.5, says("mai"));
    const auto answered = run(request());  // private: T0 and T1
    ASSERT_TRUE(answered) << answered.error().message();
    EXPECT_EQ(rented.attempts, 0);
    EXPECT_EQ(edge.text, "forse");
    EXPECT_EQ(answered->response.caveat, "low_confidence");
    EXPECT_EQ(trace().caveat, "low_confidence");
    EXPECT_EQ(attempts(), "home answered");
    // Nothing could replace it, so it was streamed as it came.
    EXPECT_EQ(edge.deltas, 3);
}

TEST_F(CascadeTest, NotAnotherOfTheSameTier) {
    add_doubtful("home", Tier::t1, 0.9, says_sure("forse", 0.4));
    ScriptedTarget& den = add("den", Tier::t1, 0.5, says("mai"));
    const auto answered = run(request());
    ASSERT_TRUE(answered) << answered.error().message();
    EXPECT_EQ(den.attempts, 0);
    EXPECT_EQ(answered->response.caveat, "low_confidence");
}

TEST_F(CascadeTest, TheBestHeldAnswerIsToldWhenNoTierIsLeft) {
    add_doubtful("home", Tier::t0, 0.9, says_sure("locale", 0.6));
    add("office", Tier::t1, 0.5, fails(ErrorCode::unavailable));
    const auto answered = run(request());
    ASSERT_TRUE(answered) << answered.error().message();
    EXPECT_EQ(edge.text, "locale");
    EXPECT_EQ(answered->response.caveat, "low_confidence");
    EXPECT_EQ(answered->served.target, "home");
    EXPECT_EQ(attempts(), "home answered, office unavailable");
    EXPECT_EQ(trace().target, "home");
    EXPECT_EQ(trace().usage, trace().attempts[0].usage);
}

TEST_F(CascadeTest, TheMoreConfidentOfTwoDoubtfulAnswersIsTold) {
    rules = {};
    add_doubtful("home", Tier::t0, 0.9, says_sure("meglio", 0.7));
    add_doubtful("office", Tier::t1, 0.8, says_sure("peggio", 0.3));
    auto asked = request();
    asked.caller.lowest_class = Sensitivity::standard;
    asked.extensions.sensitivity = Sensitivity::standard;
    add("rented", Tier::t2, 0.3, fails(ErrorCode::unavailable));
    const auto answered = run(std::move(asked));
    ASSERT_TRUE(answered) << answered.error().message();
    EXPECT_EQ(edge.text, "meglio");
    EXPECT_EQ(attempts(), "home answered, office rejected, rented unavailable");
}

TEST_F(CascadeTest, ACostLimitHoldsForAllAttemptsTogether) {
    price = domain::Money{1000};
    add_doubtful("home", Tier::t0, 0.9, says_sure("forse", 0.4));
    ScriptedTarget& office = add("office", Tier::t1, 0.5, says("mai"));
    auto asked = request();
    asked.sampling.answer_tokens_max = 100;
    asked.extensions.cost_max = domain::Money{150'000};  // one answer of 100 tokens, not two
    const auto answered = run(std::move(asked));
    ASSERT_TRUE(answered) << answered.error().message();
    EXPECT_EQ(office.attempts, 0);
    EXPECT_EQ(answered->response.caveat, "low_confidence");
}

TEST_F(CascadeTest, AKeyWithoutRoomForASecondAnswerGetsTheFirst) {
    add_doubtful("home", Tier::t0, 0.9, says_sure("forse", 0.4));
    ScriptedTarget& office = add("office", Tier::t1, 0.5, says("mai"));
    ledger.tokens_max = 400;  // one prompt and answer
    const auto answered = run(request());
    ASSERT_TRUE(answered) << answered.error().message();
    EXPECT_EQ(office.attempts, 0);
    EXPECT_EQ(edge.text, "forse");
    EXPECT_EQ(answered->response.caveat, "low_confidence");
}

TEST_F(CascadeTest, ACallerWhoLeavesGetsNoHeldAnswer) {
    add_doubtful("home", Tier::t0, 0.9, says_sure("forse", 0.4));
    ScriptedTarget& office = add("office", Tier::t1, 0.5, fails(ErrorCode::cancelled));
    EXPECT_FALSE(run(request()).has_value());
    EXPECT_EQ(office.attempts, 1);
    EXPECT_TRUE(edge.text.empty());
    EXPECT_EQ(trace().outcome, Outcome::cancelled);
}

TEST_F(CascadeTest, NothingSaidIsNoAnswerAndNothingMeasuredIsNoDoubt) {
    add_doubtful("home", Tier::t0, 0.9, says(""));
    add("office", Tier::t1, 0.5, says("qualcosa"));
    ASSERT_TRUE(run(request()).has_value());
    EXPECT_EQ(edge.text, "qualcosa");
}

TEST_F(CascadeTest, WithoutLogprobsAnAnswerIsTakenAsItIs) {
    add_doubtful("home", Tier::t0, 0.9, says("senza numeri"));
    ScriptedTarget& office = add("office", Tier::t1, 0.5, says("mai"));
    ASSERT_TRUE(run(request()).has_value());
    EXPECT_EQ(office.attempts, 0);
    EXPECT_FALSE(trace().attempts[0].confidence);
}

TEST_F(CascadeTest, JudgedAnswersMoveTheLine) {
    estimates = std::make_unique<router::Estimates>(router::EstimateOptions(), clock);
    confidences = std::make_unique<router::Confidences>(router::EstimateOptions(), clock);
    add_doubtful("home", Tier::t0, 0.9, says_sure("certo", 0.95));
    ScriptedTarget& office = add("office", Tier::t1, 0.5, says("meglio"));
    ASSERT_TRUE(run(request()).has_value());
    EXPECT_EQ(office.attempts, 0);
    for (int i = 0; i < 40; ++i) {
        std::ignore =
            confidences->learn({.target = "home"}, trace().capability.field(), 0.95, 0, 1);
    }
    ASSERT_TRUE(run(request()).has_value());
    EXPECT_EQ(office.attempts, 1);
    EXPECT_EQ(attempts(), "home rejected, office answered");
}

TEST_F(CascadeTest, AJudgementTeachesTheConfidenceToo) {
    estimates = std::make_unique<router::Estimates>(router::EstimateOptions(), clock);
    confidences = std::make_unique<router::Confidences>(router::EstimateOptions(), clock);
    add_doubtful("home", Tier::t0, 0.9, says_sure("certo", 0.95));
    ASSERT_TRUE(run(request()).has_value());
    boost::asio::io_context io;
    bool judged = false;
    spawn(io.get_executor(),
          [&]() -> Task<void> { judged = (co_await pipeline().judge(trace(), 0)).has_value(); });
    io.run();
    EXPECT_TRUE(judged);
    ASSERT_EQ(confidences->rows().size(), 1U);
    EXPECT_EQ(confidences->rows()[0].bin, 9U);
    EXPECT_EQ(store.estimate_rows.back().band, "sure9");
    const auto lines = pipeline().lines(0.9);
    ASSERT_EQ(lines.size(), 2U);
    EXPECT_FALSE(lines[0].threshold);
}

}  // namespace
}  // namespace molly::pipeline
