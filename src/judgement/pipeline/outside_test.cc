// What the pipeline does with third parties, and with what answers say.
#include <gmock/gmock.h>

#include "domain/texts.h"
#include "pipeline/internal/pipeline_fixture.h"

namespace molly::pipeline {
namespace {

using domain::FindingKind;
using domain::Sensitivity;
using domain::Tier;
using scripted::fails;
using scripted::PipelineTest;
using scripted::says;
using scripted::ScriptedTarget;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string word = "FALCO-4711";

/// Finds one word, everywhere, and says whether it has looked.
class WordAnnotator final : public annotate::Annotator {
public:
    explicit WordAnnotator(const bool& complete) : complete_(complete) {}

    Result<domain::AnnotatedRequest> annotate(
        domain::Request request, const std::optional<domain::Label>& sticky) const override {
        domain::AnnotatedRequest out;
        out.label.sensitivity = request.extensions.sensitivity.value_or(Sensitivity::standard);
        domain::for_each_text(request, [&](const std::string& text, domain::TextForm) {
            auto& findings = out.findings.emplace_back();
            const auto at = text.find(word);
            if (at == std::string::npos) return;
            findings.push_back({FindingKind::declared, domain::Checksum::none,
                                static_cast<std::uint32_t>(at),
                                static_cast<std::uint32_t>(at + word.size())});
            out.label.sensitivity = std::max(out.label.sensitivity, raises_);
        });
        if (sticky) out.label = join(out.label, *sticky);
        out.detection_complete = complete_;
        out.request = std::move(request);
        return out;
    }

    Sensitivity raises_ = Sensitivity::public_;

private:
    const bool& complete_;
};

class OutsideTest : public PipelineTest {
protected:
    OutsideTest() {
        auto annotator = std::make_unique<WordAnnotator>(complete);
        words = annotator.get();
        own_annotator = std::move(annotator);
        policy::Rule rule;
        rule.name = "press";
        rule.permit_t3 = true;
        rules.rules.push_back(rule);
    }
    domain::Request turn(std::string text) {
        domain::Request turn = request(std::move(text));
        turn.extensions.conversation = "case";
        return turn;
    }
    static std::string last_text(const ScriptedTarget& target) {
        return text_of(target.seen.back().messages.front());
    }

    bool complete = true;
    WordAnnotator* words = nullptr;
};

TEST_F(OutsideTest, AThirdPartyGetsPlaceholdersAndTheRecordsSayHowMany) {
    ScriptedTarget& cloud = add("cloud", Tier::t3, 0.9, says("fine"));
    const auto answered = run(turn("about " + word));
    ASSERT_TRUE(answered) << answered.error().message();
    EXPECT_THAT(last_text(cloud), Not(HasSubstr(word)));
    EXPECT_THAT(last_text(cloud), HasSubstr("[DECLARED_1_"));
    EXPECT_EQ(trace().attempts[0].redactions, (domain::Redactions{{FindingKind::declared, 1}}));
    EXPECT_EQ(trace().decision.rule, "press");
    EXPECT_EQ(trace().decision.t3_closed, "");
    ASSERT_EQ(store.departures.size(), 1U);
    EXPECT_THAT(metrics.render(), HasSubstr("molly_redactions_total{kind=\"declared\"} 1"));
}

TEST_F(OutsideTest, TheNextTurnHasTheSamePlaceholder) {
    ScriptedTarget& cloud = add("cloud", Tier::t3, 0.9, says("fine"));
    ASSERT_TRUE(run(turn(word)));
    const std::string first = last_text(cloud);
    ASSERT_TRUE(run(turn("again " + word)));
    EXPECT_EQ(last_text(cloud), "again " + first);
    domain::Request other = request(word);
    other.extensions.conversation = "another";
    ASSERT_TRUE(run(std::move(other)));
    EXPECT_NE(last_text(cloud), first);
}

TEST_F(OutsideTest, WithDetectionIncompleteAnotherTargetAnswersAndTheRecordsSayWhy) {
    add("home", Tier::t0, 0.1, says("from home"));
    ScriptedTarget& cloud = add("cloud", Tier::t3, 0.9, says("fine"));
    complete = false;
    ASSERT_TRUE(run(turn(word)));
    EXPECT_EQ(edge.text, "from home");
    EXPECT_EQ(cloud.attempts, 0);
    EXPECT_EQ(trace().decision.t3_closed, "detection_incomplete");
    EXPECT_THAT(metrics.render(),
                HasSubstr("molly_t3_closed_total{reason=\"detection_incomplete\"} 1"));
    // Where it was asked for by name, the error says it.
    domain::Request named = turn(word);
    named.model = "cloud";
    const auto refused = run(std::move(named));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::denied);
    EXPECT_THAT(refused.error().message(), HasSubstr("the detectors did not look at everything"));
    EXPECT_TRUE(store.departures.empty());
}

TEST_F(OutsideTest, AFallbackToAThirdPartyIsRedactedAsWell) {
    add("home", Tier::t0, 0.95, fails(ErrorCode::exhausted));
    ScriptedTarget& cloud = add("cloud", Tier::t3, 0.2, says("fine"));
    ASSERT_TRUE(run(turn(word)));
    EXPECT_THAT(last_text(cloud), Not(HasSubstr(word)));
    ASSERT_EQ(trace().attempts.size(), 2U);
    EXPECT_TRUE(trace().attempts[0].redactions.empty());
}

TEST_F(OutsideTest, ItIsSaidWhatKeepsThirdPartiesClosed) {
    add("cloud", Tier::t3, 0.9, says("fine"));
    EXPECT_EQ(pipeline().third_parties(), "open");
    EXPECT_THAT(metrics.render(), HasSubstr("molly_detection_complete 1"));
    complete = false;
    EXPECT_EQ(pipeline().third_parties(), "no_detection");
}

TEST_F(OutsideTest, OtherRulesCloseThirdPartiesFromTheNextRequestOn) {
    add("home", Tier::t0, 0.1, says("from home"));
    ScriptedTarget& cloud = add("cloud", Tier::t3, 0.9, says("fine"));
    ASSERT_TRUE(run(turn("one")));
    EXPECT_EQ(cloud.attempts, 1);
    annotate::Options blind;
    blind.detect.enabled = false;
    pipeline().use(
        {.annotator = std::shared_ptr<const annotate::Annotator>(*annotate::Annotator::make(blind)),
         .policy = std::make_shared<const policy::PolicyEngine>(rules),
         .hash = "blind"});
    EXPECT_EQ(pipeline().third_parties(), "no_detection");
    EXPECT_THAT(metrics.render(), HasSubstr("molly_detection_complete 0"));
    pipeline().use(
        {.annotator = std::shared_ptr<const annotate::Annotator>(*annotate::Annotator::make({})),
         .policy = std::make_shared<const policy::PolicyEngine>(policy::Options{}),
         .hash = "closed"});
    EXPECT_EQ(pipeline().third_parties(), "no_permit");
    domain::Request next = turn("two");
    next.extensions.sensitivity = Sensitivity::standard;
    next.caller.lowest_class = Sensitivity::standard;
    ASSERT_TRUE(run(std::move(next)));
    EXPECT_EQ(cloud.attempts, 1);
    EXPECT_EQ(trace().target, "home");
}

TEST_F(PipelineTest, WithoutATargetOrARuleThirdPartiesAreClosed) {
    add("home", Tier::t0, 0.5, says("hi"));
    EXPECT_EQ(pipeline().third_parties(), "no_target");
}

TEST_F(OutsideTest, AnEmbeddingIsRedacted) {
    ScriptedTarget& cloud = add("cloud", Tier::t3, 0.9, says(""));
    domain::Request embed = request();
    embed.operation = domain::Operation::embed;
    embed.messages.clear();
    embed.inputs = {domain::Content("x " + word)};
    ASSERT_TRUE(run(std::move(embed)));
    EXPECT_THAT(cloud.seen.back().inputs.front().text(), HasSubstr("[DECLARED_1_"));
}

TEST_F(OutsideTest, WhatAnAnswerNamesRaisesItsConversation) {
    words->raises_ = Sensitivity::secret;
    ScriptedTarget& home = add("home", Tier::t0, 0.9, says("it is " + word));
    ASSERT_TRUE(run(turn("what is its name?")));
    EXPECT_EQ(trace().label.sensitivity, Sensitivity::secret);
    EXPECT_EQ(trace().signals.back().source, "answer");
    home.scripts = {says("ok")};
    ASSERT_TRUE(run(turn("thanks")));
    EXPECT_EQ(trace().label.sensitivity, Sensitivity::secret);
}

}  // namespace
}  // namespace molly::pipeline
