#include "pipeline/pipeline.h"

#include <gtest/gtest.h>

#include "pipeline/internal/pipeline_fixture.h"

namespace molly::pipeline {
namespace {

using namespace scripted;  // NOLINT(google-build-using-namespace): the cast of these tests
using domain::Delta;
using domain::Outcome;
using domain::Sensitivity;
using domain::Tier;
using std::chrono::milliseconds;

TEST_F(PipelineTest, AnAnswerReachesTheEdgeAndLeavesItsTrace) {
    add("home", Tier::t0, 0.5, says("buongiorno"));
    const auto answered = run(request());
    ASSERT_TRUE(answered) << answered.error().message();
    EXPECT_EQ(edge.text, "buongiorno");
    ASSERT_EQ(edge.served.size(), 1U);
    EXPECT_EQ(edge.served[0].target, "home");
    EXPECT_EQ(edge.served[0].receipt, "r1");
    EXPECT_EQ(answered->response.text.text(), "buongiorno");
    EXPECT_EQ(answered->response.usage.source, domain::Usage::Source::estimate);
    EXPECT_EQ(answered->response.usage.answer_tokens, 3U);
    ASSERT_EQ(store.appended.size(), 1U);
    EXPECT_EQ(trace().outcome, Outcome::answered);
    EXPECT_EQ(trace().target, "home");
    EXPECT_EQ(trace().label.sensitivity, Sensitivity::private_);
    EXPECT_EQ(trace().decision.rule, "class-private");
    EXPECT_FALSE(trace().conversation.empty());
    EXPECT_TRUE(store.departures.empty());
    EXPECT_GT(ledger.settled, 0U);
    EXPECT_NE(metrics.render().find(
                  "molly_requests_total{outcome=\"answered\",tier=\"T0\",dialect=\"openai\"} 1"),
              std::string::npos);
}

TEST_F(PipelineTest, AnotherTargetAnswersWhenTheFirstCannot) {
    routing.failures_to_open = 100;
    add("home", Tier::t0, 0.5, says("da casa"));
    ScriptedTarget& office = add("office", Tier::t1, 0.9, says(""));
    for (const ErrorCode code : {ErrorCode::unavailable, ErrorCode::upstream_failed,
                                 ErrorCode::rate_limited, ErrorCode::exhausted}) {
        office.scripts = {fails(code)};
        edge.text.clear();
        store.departures.clear();
        ASSERT_TRUE(run(request())) << to_string(code);
        EXPECT_EQ(edge.text, "da casa");
        ASSERT_EQ(trace().attempts.size(), 2U);
        EXPECT_EQ(trace().attempts[0].failed, code);
        EXPECT_EQ(trace().attempts[0].target, "office");
        EXPECT_EQ(store.departures.size(), 1U);
    }
    EXPECT_EQ(store.appended.size(), 4U);
}

TEST_F(PipelineTest, SilentDeltasDoNotBindTheRequestToATarget) {
    Script silent = fails(ErrorCode::upstream_failed);
    silent.deltas.emplace_back();
    add("home", Tier::t0, 0.5, says("da casa"));
    add("office", Tier::t1, 0.9, silent);
    ASSERT_TRUE(run(request()));
    EXPECT_EQ(edge.text, "da casa");
    EXPECT_EQ(edge.served.size(), 1U);
}

// Case 4: never a second model's text appended silently.
TEST_F(PipelineTest, ATargetThatDiesMidStreamTruncatesAndIsNotReplaced) {
    Script dying = fails(ErrorCode::upstream_failed);
    dying.deltas.push_back(piece("metà"));
    ScriptedTarget& home = add("home", Tier::t0, 0.5, says("da casa"));
    add("office", Tier::t1, 0.9, dying);
    const auto answered = run(request());
    ASSERT_FALSE(answered);
    EXPECT_EQ(answered.error().code(), ErrorCode::upstream_failed);
    EXPECT_EQ(edge.text, "metà");
    EXPECT_EQ(home.attempts, 0);
    EXPECT_EQ(trace().outcome, Outcome::truncated);
    EXPECT_EQ(trace().target, "office");
    EXPECT_GT(trace().usage.answer_tokens, 0U);
}

TEST_F(PipelineTest, AnAnswerThatIsNotStreamedMayBeReplacedUntilItIsWhole) {
    Script dying = fails(ErrorCode::upstream_failed);
    dying.deltas.push_back(piece("metà"));
    add("home", Tier::t0, 0.5, says("da casa"));
    add("office", Tier::t1, 0.9, dying);
    domain::Request whole = request();
    whole.stream = false;
    const auto answered = run(whole);
    ASSERT_TRUE(answered);
    EXPECT_EQ(answered->response.text.text(), "da casa");
    EXPECT_EQ(edge.served.size(), 1U);
    EXPECT_EQ(edge.text, "");
    EXPECT_GT(trace().attempts[0].usage.answer_tokens, 0U);
}

TEST_F(PipelineTest, ARefusalIsNotCarriedElsewhere) {
    ScriptedTarget& home = add("home", Tier::t0, 0.5, says("da casa"));
    ScriptedTarget& office = add("office", Tier::t1, 0.9, fails(ErrorCode::denied));
    office.scripts.push_back(fails(ErrorCode::invalid_request));
    office.scripts.push_back(fails(ErrorCode::cancelled));
    EXPECT_EQ(run(request()).error().code(), ErrorCode::denied);
    EXPECT_EQ(run(request()).error().code(), ErrorCode::invalid_request);
    EXPECT_EQ(run(request()).error().code(), ErrorCode::cancelled);
    EXPECT_EQ(home.attempts, 0);
    EXPECT_EQ(trace().outcome, Outcome::cancelled);
}

TEST_F(PipelineTest, APaidAttemptWhoseBodyWasAcceptedIsTheLast) {
    price = domain::Money{1000};
    ScriptedTarget& home = add("home", Tier::t0, 0.5, says("da casa"));
    add("office", Tier::t1, 0.9, fails(ErrorCode::upstream_failed, true));
    const auto answered = run(request());
    ASSERT_FALSE(answered);
    EXPECT_EQ(home.attempts, 0);
    EXPECT_NE(answered.error().message().find("(attempts: office upstream_failed)"),
              std::string::npos);
    EXPECT_EQ(trace().attempts[0].usage.source, domain::Usage::Source::estimate);
    EXPECT_GT(ledger.settled, 0U);
}

TEST_F(PipelineTest, AWastedFreeAttemptIsFollowedAndLeavesItsLine) {
    add("home", Tier::t0, 0.5, says("da casa"));
    add("office", Tier::t1, 0.9, fails(ErrorCode::upstream_failed, true));
    ASSERT_TRUE(run(request()));
    EXPECT_GT(trace().attempts[0].usage.prompt_tokens, 0U);
    EXPECT_EQ(trace().usage, trace().attempts[1].usage);
}

// Case 19.
TEST_F(PipelineTest, EachTargetIsTriedOnceAndTheErrorListsTheAttempts) {
    add("home", Tier::t0, 0.5, fails(ErrorCode::rate_limited));
    add("office", Tier::t1, 0.9, fails(ErrorCode::rate_limited));
    add("shed", Tier::t1, 0.7, fails(ErrorCode::unavailable));
    const auto answered = run(request());
    ASSERT_FALSE(answered);
    EXPECT_EQ(answered.error().code(), ErrorCode::rate_limited);
    EXPECT_NE(answered.error().message().find(
                  "(attempts: office rate_limited, shed unavailable, home rate_limited)"),
              std::string::npos);
    EXPECT_NE(answered.error().message_italian().find("tentativi"), std::string::npos);
    EXPECT_EQ(trace().attempts.size(), 3U);
    EXPECT_EQ(trace().outcome, Outcome::failed);
    EXPECT_EQ(ledger.settled, 0U);
}

// Case 24: alias and fallback stay within the key's models.
TEST_F(PipelineTest, TheKeysModelsBindAliasesAndFallback) {
    add("home", Tier::t0, 0.5, fails(ErrorCode::unavailable));
    ScriptedTarget& office = add("office", Tier::t1, 0.9, says("no"));
    domain::Request asked = request();
    asked.model = "gpt-4o";
    asked.caller.models = {"home"};
    EXPECT_EQ(run(asked).error().code(), ErrorCode::unavailable);
    asked.model = "office";
    const auto denied = run(asked);
    EXPECT_EQ(denied.error().code(), ErrorCode::denied);
    EXPECT_NE(denied.error().message().find("may use only home"), std::string::npos);
    EXPECT_EQ(office.attempts, 0);
    EXPECT_TRUE(store.departures.empty());
    EXPECT_EQ(trace().outcome, Outcome::refused);
}

TEST_F(PipelineTest, NothingLeavesWithoutACommittedDeparture) {
    ScriptedTarget& home = add("home", Tier::t0, 0.5, says("da casa"));
    ScriptedTarget& office = add("office", Tier::t1, 0.9, says("no"));
    store.depart_fails = true;
    EXPECT_EQ(run(request()).error().code(), ErrorCode::exhausted);
    EXPECT_EQ(office.attempts + home.attempts, 0);
}

TEST_F(PipelineTest, AnAnswerThatCannotBeRecordedIsNone) {
    add("home", Tier::t0, 0.5, says("da casa"));
    store.append_fails = true;
    const auto answered = run(request());
    ASSERT_FALSE(answered);
    EXPECT_EQ(answered.error().reason(), "trace_not_committed");
}

TEST_F(PipelineTest, ARefusalIsRecordedWithItsRuleAndReservesNothing) {
    ledger.refuses = true;
    add("office", Tier::t1, 0.9, says("no"));
    domain::Request secret = request();
    secret.extensions.sensitivity = Sensitivity::secret;
    const auto refused = run(secret);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::denied);
    EXPECT_NE(refused.error().message().find("rule class-secret permits T0"), std::string::npos);
    EXPECT_EQ(trace().outcome, Outcome::refused);
    EXPECT_EQ(trace().failure, "denied: no_target_permitted");
    EXPECT_EQ(trace().label.sensitivity, Sensitivity::secret);
    ASSERT_EQ(trace().decision.candidates.size(), 1U);
    EXPECT_NE(metrics.render().find("molly_denied_total{reason=\"no_target_permitted\"} 1"),
              std::string::npos);
    EXPECT_EQ(run(request("altro")).error().code(), ErrorCode::rate_limited);
    EXPECT_EQ(trace().outcome, Outcome::refused);
}

TEST_F(PipelineTest, TheLabelSticksToTheConversation) {
    annotate::LabelRule rule;
    rule.name = "falcon";
    rule.phrases = {"falco"};
    rule.sensitivity = Sensitivity::secret;
    labels.rules.push_back(rule);
    add("home", Tier::t0, 0.5, says("da casa"));
    add("office", Tier::t1, 0.9, says("ufficio"));
    domain::Request turn = request();
    turn.messages.push_back(domain::text_message(domain::Role::user, "il falco"));
    EXPECT_EQ(run(turn)->served.target, "home");
    domain::Request shortened = request();
    EXPECT_EQ(run(shortened)->served.target, "home");
    EXPECT_EQ(trace().label.sensitivity, Sensitivity::secret);
    domain::Request other = request("altro");
    EXPECT_EQ(run(other)->served.target, "office");
}

TEST_F(PipelineTest, ARefusedDeclarationDoesNotStick) {
    add("home", Tier::t0, 0.5, says("da casa"));
    domain::Request low = request();
    low.extensions.sensitivity = Sensitivity::public_;
    low.caller.lowest_class = Sensitivity::standard;
    EXPECT_EQ(run(low).error().reason(), "class_below_key");
    low.extensions.sensitivity = Sensitivity::standard;
    ASSERT_TRUE(run(low));
    EXPECT_EQ(trace().label.sensitivity, Sensitivity::standard);
    EXPECT_TRUE(trace().declassified);
}

TEST_F(PipelineTest, ACallerWhoLeftIsNotServed) {
    ScriptedTarget& home = add("home", Tier::t0, 0.5, says("da casa"));
    domain::Request asked = request();
    asked.cancellation->cancel();
    EXPECT_EQ(run(asked).error().code(), ErrorCode::cancelled);
    EXPECT_EQ(home.attempts, 0);
    edge.gone = true;
    EXPECT_EQ(run(request()).error().code(), ErrorCode::cancelled);
    EXPECT_EQ(trace().outcome, Outcome::cancelled);
    EXPECT_EQ(store.appended.size(), 2U);
    edge.gone = false;
    EXPECT_TRUE(run(request())) << "a caller who leaves says nothing about the target";
}

TEST_F(PipelineTest, TheTimeOfARequestIsBounded) {
    ScriptedTarget& home = add("home", Tier::t0, 0.5, says("da casa"));
    ScriptedTarget& office = add("office", Tier::t1, 0.9, fails(ErrorCode::unavailable));
    office.on_attempt = [this] { clock.advance(std::chrono::minutes(6)); };
    EXPECT_EQ(run(request()).error().code(), ErrorCode::deadline_exceeded);
    EXPECT_EQ(home.attempts, 0);
    EXPECT_EQ(trace().duration, std::chrono::minutes(6));
}

TEST_F(PipelineTest, ATargetThatKeepsFailingIsLeftAloneForAWhile) {
    ScriptedTarget& office = add("office", Tier::t1, 0.9, fails(ErrorCode::unavailable));
    add("home", Tier::t0, 0.5, says("da casa"));
    for (int i = 0; i < 5; ++i)
        ASSERT_TRUE(run(request()));
    EXPECT_EQ(office.attempts, 3);
    EXPECT_NE(trace().decision.candidates.back().excluded_by.find("it has failed"),
              std::string::npos);
    clock.advance(routing.open_for);
    office.scripts.push_back(says("ufficio"));
    office.scripts.pop_front();
    EXPECT_EQ(run(request())->served.target, "office");
}

TEST_F(PipelineTest, AnEmbeddingHasNoDeltasAndItsUsageCounts) {
    Script vectors;
    vectors.response.embeddings = {{0.6F, 0.8F}};
    vectors.response.usage.prompt_tokens = 11;
    vectors.response.usage.source = domain::Usage::Source::engine;
    add("home", Tier::t0, 0.5, vectors);
    domain::Request asked = request();
    asked.operation = domain::Operation::embed;
    const auto answered = run(asked);
    ASSERT_TRUE(answered) << answered.error().message();
    EXPECT_EQ(edge.served.size(), 1U);
    EXPECT_EQ(answered->response.embeddings.size(), 1U);
    EXPECT_EQ(trace().usage.prompt_tokens, 11U);
}

TEST_F(PipelineTest, AnAliasIsSaidAndAnUnknownNameIsRefused) {
    add("home", Tier::t0, 0.5, says("da casa"));
    domain::Request asked = request();
    asked.model = "gpt-4o";
    EXPECT_TRUE(run(asked)->served.aliased);
    asked.model = "nemo";
    EXPECT_EQ(run(asked).error().reason(), "model_not_found");
    EXPECT_EQ(trace().outcome, Outcome::failed);
}

TEST_F(PipelineTest, ADecisionIsExplainedWithoutAnAttempt) {
    ScriptedTarget& home = add("home", Tier::t0, 0.5, says("da casa"));
    add("cloud", Tier::t3, 0.9, says("no"));
    const auto decision = pipeline().explain(request(), key);
    ASSERT_TRUE(decision);
    ASSERT_EQ(decision->candidates.size(), 2U);
    EXPECT_EQ(decision->candidates[0].target, "home");
    EXPECT_NE(decision->candidates[1].excluded_by.find("once redacted"), std::string::npos);
    EXPECT_EQ(home.attempts, 0);
    EXPECT_TRUE(store.appended.empty());
}

const std::string secret_passage =
    "Progetto Falco: la cessione dello stabilimento di Ivrea sarà annunciata il tre marzo, dopo la "
    "firma dell'accordo con la controparte svizzera e prima della riunione del consiglio.";

TEST_F(PipelineTest, ALabelSurvivesCopyAndPasteIntoAnotherConversation) {
    add("home", Tier::t0, 0.5, says("va bene"));
    annotate::LabelRule rule;
    rule.name = "falcon";
    rule.phrases = {"progetto falco"};
    rule.sensitivity = domain::Sensitivity::secret;
    labels.rules.push_back(rule);
    ASSERT_TRUE(run(request(secret_passage)));
    EXPECT_FALSE(store.prints.empty());
    domain::Request pasted = request("Riassumi: " + secret_passage.substr(16));
    pasted.caller.member = "bruno";
    pasted.caller.key_id = "k2";
    ASSERT_TRUE(run(std::move(pasted)));
    EXPECT_EQ(trace().label.sensitivity, domain::Sensitivity::secret);
    EXPECT_EQ(trace().signals.back().source, "fingerprint");
    ASSERT_TRUE(
        run(request("Tutt'altra cosa: una ricetta di gnocchi di patate con la salvia, il "
                    "burro e il formaggio, per quattro persone e senza fretta.")));
    EXPECT_EQ(trace().label.sensitivity, domain::Sensitivity::private_);
}

TEST_F(PipelineTest, WhatStoodBesideAPastedPassageIsNotLabelledForGood) {
    add("home", Tier::t0, 0.5, says("va bene"));
    domain::Request declared = request(secret_passage);
    declared.extensions.sensitivity = domain::Sensitivity::secret;
    ASSERT_TRUE(run(std::move(declared)));
    const std::size_t known = store.prints.size();
    const std::string other =
        "Il verbale dell'assemblea condominiale riporta i nomi dei presenti e le spese approvate "
        "per il tetto, la caldaia e il giardino comune.";
    ASSERT_TRUE(run(request(other + secret_passage)));
    EXPECT_EQ(trace().label.sensitivity, domain::Sensitivity::secret);
    EXPECT_EQ(store.prints.size(), known);
    ASSERT_TRUE(run(request(other)));
    EXPECT_EQ(trace().label.sensitivity, domain::Sensitivity::private_);
}

TEST_F(PipelineTest, AnExplanationRemembersNothing) {
    add("home", Tier::t0, 0.5, says("va bene"));
    domain::Request declared = request(secret_passage);
    declared.extensions.sensitivity = domain::Sensitivity::secret;
    ASSERT_TRUE(pipeline().explain(std::move(declared), key));
    EXPECT_TRUE(store.prints.empty());
}

TEST_F(PipelineTest, OtherRulesDecideFromTheNextRequestOn) {
    add("home", Tier::t0, 0.5, says("va bene"));
    add("office", Tier::t1, 0.9, says("va bene"));
    ASSERT_TRUE(run(request()));
    EXPECT_EQ(trace().target, "office");
    policy::Rule stay;
    stay.name = "stay";
    stay.tiers = domain::TierSet{Tier::t0};
    policy::Options strict;
    strict.rules.push_back(stay);
    pipeline().use({.annotator = std::shared_ptr<const annotate::Annotator>(
                        *annotate::Annotator::make(labels)),
                    .policy = std::make_shared<const policy::PolicyEngine>(strict),
                    .hash = "abc"});
    ASSERT_TRUE(run(request()));
    EXPECT_EQ(trace().target, "home");
    EXPECT_EQ(trace().decision.rule, "stay");
    EXPECT_EQ(trace().rules_hash, "abc");
}

TEST_F(PipelineTest, ARequestInFlightKeepsWhatItWasClearedWith) {
    ScriptedTarget& home = add("home", Tier::t0, 0.9, fails(ErrorCode::unavailable));
    add("office", Tier::t1, 0.5, says("va bene"));
    policy::Rule stay;
    stay.name = "stay";
    stay.tiers = domain::TierSet{Tier::t0};
    rules.rules.push_back(stay);
    home.on_attempt = [&] {  // wider rules come while the only permitted target fails
        pipeline().use({.annotator = std::shared_ptr<const annotate::Annotator>(
                            *annotate::Annotator::make(labels)),
                        .policy = std::make_shared<const policy::PolicyEngine>(policy::Options{}),
                        .hash = "wider"});
    };
    EXPECT_FALSE(run(request()));
    EXPECT_EQ(trace().attempts.size(), 1U);
    EXPECT_TRUE(store.departures.empty());
}

}  // namespace
}  // namespace molly::pipeline
