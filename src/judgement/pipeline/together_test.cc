// Several targets at once: a mixture of specialists, and a hedge.
#include <utility>

#include <gtest/gtest.h>

#include "pipeline/internal/pipeline_fixture.h"

namespace molly::pipeline {
namespace {

using namespace scripted;  // NOLINT(google-build-using-namespace): the cast of these tests
using domain::Field;
using domain::Sensitivity;
using domain::Tier;

/// Takes every request for one of these fields.
class FieldsAnnotator final : public annotate::Annotator {
public:
    FieldsAnnotator(std::unique_ptr<annotate::Annotator> inner, domain::FieldShares fields)
        : inner_(std::move(inner)), fields_(fields) {}
    Result<domain::AnnotatedRequest> annotate(
        domain::Request request, const std::optional<domain::Label>& sticky) const override {
        TRY(domain::AnnotatedRequest annotated, inner_->annotate(std::move(request), sticky));
        annotated.capability.classified = true;
        annotated.capability.fields = fields_;
        annotated.capability.task = domain::TaskType::chat;
        return annotated;
    }

private:
    std::unique_ptr<annotate::Annotator> inner_;
    domain::FieldShares fields_;
};

class MixtureTest : public PipelineTest {
protected:
    MixtureTest() {
        domain::FieldShares fields{};
        fields[static_cast<std::size_t>(Field::medicine)] = 0.35F;
        fields[static_cast<std::size_t>(Field::finance)] = 0.35F;
        fields[static_cast<std::size_t>(Field::arts)] = 0.3F;
        own_annotator =
            std::make_unique<FieldsAnnotator>(*annotate::Annotator::make(labels), fields);
    }
    static domain::Specialist specialist(std::string adapter, Field field, double quality) {
        domain::Specialist one;
        one.adapter = std::move(adapter);
        one.field = field;
        one.quality = quality;
        one.threshold = 0.5;
        return one;
    }
    /// A target of this device with three specialists.
    ScriptedTarget& add_home(std::vector<Script> scripts) {
        specialists = {specialist("art", Field::arts, 0.6), specialist("med", Field::medicine, 0.9),
                       specialist("tax", Field::finance, 0.8)};
        ScriptedTarget& home = add("home", Tier::t0, 0.3, scripts.front());
        specialists.clear();
        home.scripts = {scripts.begin(), scripts.end()};
        for (const char* name : {"art", "med", "tax"}) {
            const std::string version = std::string(name) + "@1.0.0";
            home.versions[name] = version;
            home.versions[version] = version;
            home.adapter_labels[version].sensitivity = Sensitivity::public_;
        }
        return home;
    }
};

TEST_F(MixtureTest, WhatIsOfSeveralDomainsIsAskedOfTheirSpecialistsAtOnce) {
    ScriptedTarget& home = add_home({says("A"), says("B"), says("C")});
    ScriptedTarget& office = add("office", Tier::t1, 0.9, says("mai"));
    const auto answered = run(request());
    ASSERT_TRUE(answered) << answered.error().message();
    // Nobody agrees with anybody: the most likely of the best.
    EXPECT_EQ(attempts(),
              "mixture home/med@1.0.0 answered, mixture home/tax@1.0.0 rejected, "
              "mixture home/art@1.0.0 rejected");
    EXPECT_EQ(edge.text, "A");
    ASSERT_EQ(edge.served.size(), 1U);
    EXPECT_EQ(edge.served[0].adapter, "med@1.0.0");
    EXPECT_EQ(trace().adapter, "med@1.0.0");
    EXPECT_EQ(office.attempts, 0);
    EXPECT_EQ(home.attempts, 3);
    EXPECT_NEAR(trace().decision.candidates[0].weight, 0.35, 1e-6);
    ASSERT_EQ(store.appended.size(), 1U);
}

TEST_F(MixtureTest, AgreementOutweighsTheLikeliest) {
    add_home({says("Parigi"), says("Roma"), says("roma!")});
    ASSERT_TRUE(run(request()).has_value());
    EXPECT_EQ(edge.text, "Roma");
    EXPECT_EQ(trace().adapter, "tax@1.0.0");
    EXPECT_EQ(trace().usage, trace().attempts[1].usage);
}

TEST_F(MixtureTest, AllRunBesideEachOther) {
    const auto gate = std::make_shared<Promise<bool>>();
    Script waits = says("A");
    waits.waits = gate;
    ScriptedTarget& home = add_home({waits, says("B"), says("C")});
    home.on_attempt = [&] {
        if (home.attempts == 3) gate->set(true);
    };
    ASSERT_TRUE(run(request()).has_value());  // one after the other would wait for ever
    EXPECT_EQ(home.attempts, 3);
}

TEST_F(MixtureTest, TheLabelOfEveryAdapterIsJoined) {
    ScriptedTarget& home = add_home({says("A"), says("B"), says("C")});
    home.adapter_labels["art@1.0.0"].sensitivity = Sensitivity::secret;
    ASSERT_TRUE(run(request()).has_value());
    EXPECT_EQ(trace().label.sensitivity, Sensitivity::secret);
}

TEST_F(MixtureTest, OneThatFailsLeavesTheOthers) {
    add_home({fails(ErrorCode::unavailable), says("B"), fails(ErrorCode::internal)});
    ASSERT_TRUE(run(request()).has_value());
    EXPECT_EQ(edge.text, "B");
    EXPECT_EQ(attempts(),
              "mixture home/med@1.0.0 unavailable, mixture home/tax@1.0.0 answered, "
              "mixture home/art@1.0.0 internal");
}

TEST_F(MixtureTest, WhenAllFailTheNextStepIsAsked) {
    add_home({fails(ErrorCode::unavailable)});
    add("office", Tier::t1, 0.9, says("sì"));
    ASSERT_TRUE(run(request()).has_value());
    EXPECT_EQ(edge.text, "sì");
}

TEST_F(MixtureTest, AnAnswerThatNobodyIsSureOfGoesUp) {
    confidence_min = 0.8;
    add_home({says_sure("A", 0.4), says_sure("B", 0.4), says_sure("C", 0.4)});
    confidence_min = 0;
    add("office", Tier::t1, 0.9, says("sì"));
    ASSERT_TRUE(run(request()).has_value());
    EXPECT_EQ(edge.text, "sì");
    EXPECT_EQ(trace().target, "office");
    EXPECT_TRUE(trace().attempts[0].rejected);
}

TEST_F(MixtureTest, AKeyWithoutRoomForAllOfThemGetsOne) {
    ScriptedTarget& home = add_home({says("A")});
    ledger.tokens_max = 400;  // one prompt and answer
    ASSERT_TRUE(run(request()).has_value());
    EXPECT_EQ(home.attempts, 1);
    EXPECT_EQ(attempts(), "home/med@1.0.0 answered");
}

TEST_F(MixtureTest, NobodyIsMixedWhereNobodyWantsIt) {
    routing.mixture_max = 0;
    ScriptedTarget& home = add_home({says("A")});
    add("office", Tier::t1, 0.9, says("sì"));
    ASSERT_TRUE(run(request()).has_value());
    EXPECT_EQ(home.attempts, 0);
    EXPECT_EQ(edge.text, "sì");
}

TEST_F(MixtureTest, CallsOfToolsAreNotWeighedAgainstEachOther) {
    ScriptedTarget& home = add_home({says("A")});
    auto asked = request();
    domain::Tool tool;
    tool.name = "look";
    asked.tools.push_back(std::move(tool));
    std::ignore = run(std::move(asked));
    EXPECT_LE(home.attempts, 1);
}

class HedgeTest : public PipelineTest {
protected:
    HedgeTest() {
        routing.hedge = true;
        routing.hedge_after = std::chrono::milliseconds(500);
    }
    /// Says it only once the gate is open.
    Script slow(std::string text) {
        Script script = says(std::move(text));
        script.waits = gate;
        return script;
    }
    std::shared_ptr<Promise<bool>> gate = std::make_shared<Promise<bool>>();
};

TEST_F(HedgeTest, AQuickAnswerIsNobodysRival) {
    add("home", Tier::t0, 0.9, says("subito"));
    ScriptedTarget& office = add("office", Tier::t1, 0.5, says("mai"));
    ASSERT_TRUE(run(request()).has_value());
    EXPECT_EQ(edge.text, "subito");
    EXPECT_EQ(office.attempts, 0);
    EXPECT_EQ(attempts(), "home answered");
}

TEST_F(HedgeTest, TheFirstWordWinsAndTheOtherIsGivenUp) {
    ScriptedTarget& home = add("home", Tier::t0, 0.9, slow("tardi"));
    ScriptedTarget& office = add("office", Tier::t1, 0.5, says("pronto"));
    office.on_attempt = [&] { gate->set(true); };
    const auto answered = run(request());
    ASSERT_TRUE(answered) << answered.error().message();
    EXPECT_EQ(edge.text, "pronto");
    EXPECT_EQ(attempts(), "home cancelled, hedge office answered");
    EXPECT_EQ(trace().attempts[0].failure, "hedge_lost");
    EXPECT_TRUE(trace().attempts[0].rejected);
    EXPECT_EQ(trace().target, "office");
    EXPECT_EQ(answered->served.target, "office");
    EXPECT_EQ(home.attempts, 1);
    ASSERT_EQ(store.appended.size(), 1U);
}

TEST_F(HedgeTest, TheSlowOneMayStillWin) {
    add("home", Tier::t0, 0.9, slow("eccomi"));
    Script never = says("mai");
    never.waits = std::make_shared<Promise<bool>>();
    ScriptedTarget& office = add("office", Tier::t1, 0.5, never);
    office.on_attempt = [&] { gate->set(true); };
    office.on_given_up = [&] { never.waits->set(true); };
    ASSERT_TRUE(run(request()).has_value());
    EXPECT_EQ(edge.text, "eccomi");
    EXPECT_EQ(attempts(), "home answered, hedge office cancelled");
    EXPECT_EQ(trace().target, "home");
}

TEST_F(HedgeTest, NeverForAPaidCallUnlessThatIsDeclared) {
    price = domain::Money{1000};
    ScriptedTarget& home = add("home", Tier::t0, 0.9, slow("eccomi"));
    ScriptedTarget& office = add("office", Tier::t1, 0.5, says("mai"));
    home.on_attempt = [&] { gate->set(true); };
    ASSERT_TRUE(run(request()).has_value());
    EXPECT_EQ(office.attempts, 0);
    EXPECT_EQ(edge.text, "eccomi");
}

TEST_F(HedgeTest, ADeclaredPaidCallIsHedgedAndTheWastedLineCosts) {
    price = domain::Money{1000};
    routing.hedge_paid = true;
    Script late = slow("tardi");
    late.report.body_accepted = true;
    add("home", Tier::t0, 0.9, late);
    ScriptedTarget& office = add("office", Tier::t1, 0.5, says("pronto"));
    office.on_attempt = [&] { gate->set(true); };
    ASSERT_TRUE(run(request()).has_value());
    EXPECT_EQ(edge.text, "pronto");
    ASSERT_EQ(trace().attempts.size(), 2U);
    EXPECT_GT(trace().attempts[0].usage.prompt_tokens, 0U);
    EXPECT_EQ(trace().cost, trace().attempts[0].cost + trace().attempts[1].cost);
    EXPECT_EQ(trace().usage, trace().attempts[1].usage);
}

TEST_F(HedgeTest, TheLastStepOfACascadeIsHedgedLikeAnyOther) {
    confidence_min = 0.8;
    add("home", Tier::t0, 0.9, says_sure("forse", 0.3));
    confidence_min = 0;
    add("office", Tier::t1, 0.8, slow("tardi"));
    ScriptedTarget& den = add("den", Tier::t1, 0.5, says("pronto"));
    den.on_attempt = [&] { gate->set(true); };
    const auto answered = run(request());
    ASSERT_TRUE(answered) << answered.error().message();
    EXPECT_EQ(attempts(), "home rejected, office cancelled, hedge den answered");
    EXPECT_EQ(edge.text, "pronto");
    EXPECT_TRUE(answered->response.caveat.empty());
}

TEST_F(HedgeTest, AfterADoubtfulAnswerOnlyAHigherTierIsARival) {
    confidence_min = 0.8;
    add("home", Tier::t0, 0.9, says_sure("forse", 0.3));
    confidence_min = 0;
    ScriptedTarget& office = add("office", Tier::t1, 0.8, slow("eccomi"));
    ScriptedTarget& attic = add("attic", Tier::t0, 0.1, says("mai"));
    // Long after a rival would have been asked.
    office.on_attempt = [&] {
        spawn(running->get_executor(), [&]() -> Task<void> {
            for (int i = 0; i < 100; ++i)
                co_await boost::asio::post(*running, boost::asio::use_awaitable);
            gate->set(true);
        });
    };
    attic.on_attempt = [&] { gate->set(true); };
    ASSERT_TRUE(run(request()).has_value());
    EXPECT_EQ(attempts(), "home rejected, office answered");
    EXPECT_EQ(edge.text, "eccomi");
    EXPECT_EQ(attic.attempts, 0);
}

TEST_F(HedgeTest, OnlyAPermittedTargetIsARival) {
    ScriptedTarget& home = add("home", Tier::t0, 0.9, slow("eccomi"));
    ScriptedTarget& rented = add("rented", Tier::t2, 0.5, says("mai"));
    home.on_attempt = [&] { gate->set(true); };
    ASSERT_TRUE(run(request()).has_value());  // private: T0 and T1
    EXPECT_EQ(rented.attempts, 0);
    EXPECT_EQ(edge.text, "eccomi");
}

TEST_F(HedgeTest, OneThatFailsWhileTheOtherRunsEndsNothing) {
    Script dead = fails(ErrorCode::unavailable);
    dead.waits = gate;
    add("home", Tier::t0, 0.9, dead);
    ScriptedTarget& office = add("office", Tier::t1, 0.5, says("pronto"));
    office.on_attempt = [&] { gate->set(true); };
    ASSERT_TRUE(run(request()).has_value());
    EXPECT_EQ(edge.text, "pronto");
}

TEST_F(HedgeTest, WhenBothFailTheNextIsAsked) {
    Script dead = fails(ErrorCode::unavailable);
    dead.waits = gate;
    add("home", Tier::t0, 0.9, dead);
    ScriptedTarget& office = add("office", Tier::t1, 0.7, fails(ErrorCode::upstream_failed));
    office.on_attempt = [&] { gate->set(true); };
    add("den", Tier::t1, 0.5, says("infine"));
    ASSERT_TRUE(run(request()).has_value());
    EXPECT_EQ(edge.text, "infine");
    EXPECT_EQ(attempts(), "home unavailable, hedge office upstream_failed, den answered");
}

TEST_F(HedgeTest, ACallerWhoLeavesEndsBoth) {
    add("home", Tier::t0, 0.9, slow("tardi"));
    Script also = says("mai");
    also.waits = gate;
    ScriptedTarget& office = add("office", Tier::t1, 0.5, also);
    auto asked = request();
    const CancellationPtr caller = asked.cancellation;
    office.on_attempt = [&] {
        caller->cancel();
        gate->set(true);
    };
    EXPECT_FALSE(run(std::move(asked)).has_value());
    EXPECT_EQ(trace().outcome, domain::Outcome::cancelled);
    EXPECT_TRUE(edge.text.empty());
}

TEST_F(HedgeTest, WithoutADeclaredTimeNobodyIsHedgedUntilTwentyAnswersWereSeen) {
    routing.hedge_after = std::chrono::milliseconds(0);
    ScriptedTarget& home = add("home", Tier::t0, 0.9, says("subito"));
    ScriptedTarget& office = add("office", Tier::t1, 0.5, says("pronto"));
    for (int i = 0; i < 20; ++i)
        ASSERT_TRUE(run(request()).has_value());
    EXPECT_EQ(office.attempts, 0);
    home.scripts = {slow("tardi")};
    office.on_attempt = [&] { gate->set(true); };
    ASSERT_TRUE(run(request()).has_value());
    EXPECT_EQ(edge.text,
              "subitosubitosubitosubitosubitosubitosubitosubitosubitosubitosubitosubito"
              "subitosubitosubitosubitosubitosubitosubitosubitopronto");
}

}  // namespace
}  // namespace molly::pipeline
