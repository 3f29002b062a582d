#include "router/router.h"

#include <gtest/gtest.h>

#include "base/coroutine.h"
#include "policy/policy_engine.h"

namespace molly::router {
namespace {

using domain::Decision;
using domain::Sensitivity;
using domain::Tier;
using std::chrono::milliseconds;
using std::chrono::seconds;

class StoppedClock final : public Clock {
public:
    MonoTime now() const noexcept override { return now_; }
    WallTime wall() const noexcept override { return {}; }
    Task<void> sleep_until(MonoTime /*when*/) override { co_return; }
    void advance(Duration by) { now_ += by; }

private:
    MonoTime now_{std::chrono::hours(1)};
};

TargetView view(std::string id, Tier tier, double quality = 0.5) {
    auto spec = std::make_shared<domain::TargetSpec>();
    spec->id = std::move(id);
    spec->tier = tier;
    spec->quality = quality;
    spec->first_token = milliseconds(100);
    spec->tokens_per_second = 1000;
    TargetView view;
    view.spec = spec;
    return view;
}

domain::TargetSpec& edit(TargetView& view) {
    auto spec = std::make_shared<domain::TargetSpec>(*view.spec);
    view.spec = spec;
    return *spec;
}

domain::AnnotatedRequest ask(Sensitivity sensitivity = Sensitivity::private_) {
    domain::AnnotatedRequest annotated;
    annotated.label.sensitivity = sensitivity;
    annotated.request.caller.key_id = "k1";
    annotated.capability.prompt_tokens = 100;
    annotated.capability.context_tokens = 100;
    annotated.capability.answer_tokens = 100;
    return annotated;
}

struct Planned {
    Result<Plan> plan;
    Decision decision;

    std::string steps() const {
        if (!plan) return "error: " + plan.error().reason();
        std::string text;
        for (const Plan::Step& step : plan->steps)
            text += (text.empty() ? "" : " ") + step.target->id;
        return text;
    }
    std::string excluded(const std::string& target) const {
        for (const domain::Candidate& candidate : decision.candidates) {
            if (candidate.target == target) return candidate.excluded_by;
        }
        return "not a candidate";
    }
};

Planned plan_of(domain::AnnotatedRequest annotated, const std::vector<TargetView>& targets,
                const Wanted& wanted = {}, const Options& options = {}) {
    const policy::PolicyEngine engine({});
    auto cleared = engine.clear(std::move(annotated));
    EXPECT_TRUE(cleared.has_value());
    Decision decision;
    auto planned = plan(*cleared, wanted, targets, options, decision);
    return {.plan = std::move(planned), .decision = std::move(decision)};
}

std::vector<TargetView> four_tiers() {
    return {view("home", Tier::t0, 0.3), view("office", Tier::t1, 0.5),
            view("rented", Tier::t2, 0.7), view("cloud", Tier::t3, 0.9)};
}

TEST(ResolveModel, KnowsTargetsAdaptersAliasesAndVendors) {
    const std::vector<std::string> known = {"home", "office/big"};
    Options options;
    options.aliases = {{"fast", "home"}, {"broken", "nowhere"}};
    const auto meaning = [&](const std::string& model) -> std::string {
        const auto wanted = resolve_model(model, known, options);
        if (!wanted) return std::string(to_string(wanted.error().code()));
        return wanted->target + "|" + wanted->adapter + (wanted->aliased ? "|alias" : "");
    };
    EXPECT_EQ(meaning("auto"), "|");
    EXPECT_EQ(meaning(""), "|");
    EXPECT_EQ(meaning("home"), "home|");
    EXPECT_EQ(meaning("home/law"), "home|law");
    EXPECT_EQ(meaning("office/big"), "office/big|");
    EXPECT_EQ(meaning("office/big/law"), "office/big|law");
    EXPECT_EQ(meaning("auto/law"), "|law");
    EXPECT_EQ(meaning("fast"), "home||alias");
    EXPECT_EQ(meaning("molly-nano"), "not_found");
    options.model_names = {{"molly-nano", "home"}, {"llama-3", "office/big"}};
    EXPECT_EQ(meaning("molly-nano"), "home|");
    EXPECT_EQ(meaning("molly-nano/law@1.0.0"), "home|law@1.0.0");
    EXPECT_EQ(meaning("llama-3/law"), "office/big|law");
    for (const std::string vendor :
         {"gpt-4o", "o1", "o3-mini", "claude-sonnet-4-5", "gemini-2.5-pro", "llama3.2:3b", "qwen3",
          "openai/gpt-4o", "Meta-Llama-3-8B", "text-embedding-3-small", "mistral:latest"}) {
        EXPECT_EQ(meaning(vendor), "||alias") << vendor;
    }
    EXPECT_EQ(meaning("broken"), "not_found");
    EXPECT_EQ(meaning("homer"), "not_found");
    EXPECT_EQ(meaning("office"), "not_found");
    EXPECT_EQ(meaning("ok"), "not_found");
    EXPECT_EQ(meaning("home/"), "not_found");
    options.alias_default.clear();
    EXPECT_EQ(meaning("gpt-4o"), "not_found");
}

TEST(ResolveModel, AnUnknownNameIsToldSomeThatExist) {
    const auto wanted = resolve_model("nemo", {"a", "b", "c", "d", "e", "f"}, {});
    ASSERT_FALSE(wanted);
    EXPECT_EQ(wanted.error().reason(), "model_not_found");
    EXPECT_EQ(wanted.error().message(),
              "no target and no alias is called nemo; there are: auto, a, b, c, d, e, ...");
}

TEST(Plan, TheLabelLimitsTheTiers) {
    EXPECT_EQ(plan_of(ask(Sensitivity::secret), four_tiers()).steps(), "home");
    EXPECT_EQ(plan_of(ask(Sensitivity::private_), four_tiers()).steps(), "office home");
    EXPECT_EQ(plan_of(ask(Sensitivity::standard), four_tiers()).steps(), "rented office home");
    const Planned open = plan_of(ask(Sensitivity::public_), four_tiers());
    EXPECT_EQ(open.steps(), "rented office home");
    EXPECT_NE(open.excluded("cloud").find("no rule permits it"), std::string::npos);
    ASSERT_EQ(open.decision.candidates.size(), 4U);
    EXPECT_EQ(open.decision.candidates[0].target, "rented");
    EXPECT_EQ(open.decision.candidates[3].target, "cloud");
}

TEST(Plan, ANamedTargetStandsAlone) {
    EXPECT_EQ(plan_of(ask(), four_tiers(), {"home", "", false}).steps(), "home");
    const Planned denied = plan_of(ask(), four_tiers(), {"rented", "", false});
    EXPECT_EQ(denied.plan.error().code(), ErrorCode::denied);
    EXPECT_NE(denied.plan.error().message().find("rented is T2"), std::string::npos);
    EXPECT_EQ(denied.plan.error().message().find("home is"), std::string::npos);
    EXPECT_EQ(plan_of(ask(), four_tiers(), {"home", "", true}).steps(), "home office");
    Options options;
    options.named_falls_back = true;
    EXPECT_EQ(plan_of(ask(), four_tiers(), {"home", "", false}, options).steps(), "home office");
}

TEST(Plan, TheKeysModelsAndTiersHoldForEveryCandidate) {
    auto annotated = ask(Sensitivity::standard);
    annotated.request.caller.models = {"home", "rented/law"};
    EXPECT_EQ(plan_of(annotated, four_tiers()).steps(), "home");
    EXPECT_EQ(plan_of(annotated, four_tiers(), {"rented", "", true}).steps(), "home");
    EXPECT_EQ(plan_of(annotated, four_tiers(), {"rented", "", false}).plan.error().code(),
              ErrorCode::denied);
    annotated.request.caller.models.clear();
    annotated.request.caller.tiers = {Tier::t1};
    EXPECT_EQ(plan_of(annotated, four_tiers()).steps(), "office");
}

TEST(Plan, AuthoriseChecksTargetAndAdapter) {
    domain::Caller caller;
    const auto allowed = [&](const std::string& adapter) {
        return authorise(caller, *view("home", Tier::t0).spec, adapter).has_value();
    };
    EXPECT_TRUE(allowed(""));
    caller.models = {"home/law"};
    EXPECT_TRUE(allowed("law"));
    EXPECT_FALSE(allowed(""));
    EXPECT_FALSE(allowed("tax"));
    // Of several every one has to be covered, whatever its strength.
    EXPECT_TRUE(allowed("law@1.0.0*0.5"));
    EXPECT_FALSE(allowed("law,tax"));
    EXPECT_FALSE(allowed("tax*0,law"));
    caller.models = {"home/law", "home/tax@2.0.0"};
    EXPECT_TRUE(allowed("law*0.5,tax@2.0.0"));
    EXPECT_FALSE(allowed("law,tax@2.1.0"));
    caller.models = {"home"};
    EXPECT_TRUE(allowed("law"));
    EXPECT_TRUE(allowed("law,tax"));
    caller.tiers = {Tier::t1};
    EXPECT_FALSE(allowed(""));
}

TEST(Plan, ResidencyExcludesUndeclaredPlaces) {
    auto targets = four_tiers();
    edit(targets[1]).jurisdiction = "IT";
    auto annotated = ask();
    annotated.label.residency = domain::Residency({"EU"});
    const Planned planned = plan_of(annotated, targets);
    EXPECT_EQ(planned.steps(), "office");
    EXPECT_NE(planned.excluded("home").find("no jurisdiction"), std::string::npos);
}

TEST(Plan, WhatATargetCannotDoExcludesIt) {
    auto targets = four_tiers();
    edit(targets[0]).capabilities.tools = true;
    auto annotated = ask();
    annotated.capability.tools = true;
    EXPECT_EQ(plan_of(annotated, targets).steps(), "home");
    annotated.capability.images = true;
    const Planned none = plan_of(annotated, targets);
    EXPECT_EQ(none.plan.error().code(), ErrorCode::unsupported);
    EXPECT_EQ(none.excluded("home"), "it does not read images");
    auto embedding = ask();
    embedding.request.operation = domain::Operation::embed;
    EXPECT_EQ(plan_of(embedding, targets).plan.error().code(), ErrorCode::unsupported);
    edit(targets[1]).capabilities.embed = true;
    EXPECT_EQ(plan_of(embedding, targets).steps(), "office");
}

// Case 14.
TEST(Plan, AContextThatIsTooLongGoesToOneThatFitsOrIsRefusedWithBothNumbers) {
    auto targets = four_tiers();
    auto annotated = ask();
    annotated.capability.context_tokens = 9000;
    const Planned none = plan_of(annotated, targets);
    EXPECT_EQ(none.steps(), "error: context_length_exceeded");
    EXPECT_EQ(none.plan.error().code(), ErrorCode::invalid_request);
    EXPECT_NE(none.plan.error().message().find("9000"), std::string::npos);
    EXPECT_NE(none.plan.error().message().find("8192"), std::string::npos);
    edit(targets[2]).capabilities.context_tokens_max = 100'000;
    EXPECT_EQ(plan_of(annotated, targets).steps(), "error: context_length_exceeded");
    edit(targets[0]).capabilities.context_tokens_max = 10'000;
    EXPECT_EQ(plan_of(annotated, targets).steps(), "home");
    annotated.request.truncate = true;
    EXPECT_EQ(plan_of(annotated, targets).steps(), "office home");
}

TEST(Plan, CostAndLatencyLimitsAreHard) {
    auto targets = four_tiers();
    edit(targets[1]).prices.per_answer_token = domain::Money{1000};
    auto annotated = ask();
    annotated.request.extensions.cost_max = domain::Money{99'999};
    EXPECT_EQ(plan_of(annotated, targets).steps(), "home");
    EXPECT_EQ(plan_of(annotated, targets, {"office", "", false}).plan.error().code(),
              ErrorCode::exhausted);
    annotated.request.extensions.latency_max = milliseconds(199);
    const Planned late = plan_of(annotated, targets);
    EXPECT_EQ(late.plan.error().code(), ErrorCode::deadline_exceeded);
    EXPECT_EQ(late.excluded("home"), "it would take about 200 ms and at most 199 ms are allowed");
}

TEST(Plan, TheModeWeighsQualityAgainstCostAndLatency) {
    std::vector<TargetView> targets = {view("good", Tier::t1, 0.9), view("quick", Tier::t1, 0.5),
                                       view("free", Tier::t1, 0.6)};
    edit(targets[0]).prices.per_answer_token = domain::Money{100'000};
    edit(targets[0]).first_token = milliseconds(6000);
    edit(targets[1]).prices.per_answer_token = domain::Money{50'000};
    edit(targets[2]).first_token = milliseconds(6000);
    auto annotated = ask();
    const auto first = [&](domain::Mode mode) {
        annotated.request.extensions.mode = mode;
        return plan_of(annotated, targets).plan->steps.front().target->id;
    };
    EXPECT_EQ(first(domain::Mode::quality), "good");
    EXPECT_EQ(first(domain::Mode::fast), "quick");
    EXPECT_EQ(first(domain::Mode::cheap), "free");
}

TEST(Plan, AQueueAndASlowTokenLoseTheNextRequest) {
    std::vector<TargetView> targets = {view("a", Tier::t1), view("b", Tier::t1)};
    EXPECT_EQ(plan_of(ask(), targets).steps(), "a b");
    targets[0].queue_depth = 5;
    EXPECT_EQ(plan_of(ask(), targets).steps(), "b a");
    targets[1].token_ms = 500;
    EXPECT_EQ(plan_of(ask(), targets).steps(), "a b");
}

TEST(Plan, AttemptsAreCounted) {
    Options options;
    options.attempts_max = 2;
    EXPECT_EQ(plan_of(ask(Sensitivity::standard), four_tiers(), {}, options).steps(),
              "rented office");
}

TEST(Plan, WhenAllAreDownItSaysWhenToComeBack) {
    auto targets = four_tiers();
    for (TargetView& target : targets) {
        target.available = false;
        target.retry_after = milliseconds(target.spec->tier == Tier::t0 ? 7200 : 9000);
    }
    const Planned down = plan_of(ask(), targets);
    EXPECT_EQ(down.plan.error().code(), ErrorCode::unavailable);
    EXPECT_EQ(down.plan.error().retry_after(), seconds(8));
    EXPECT_EQ(plan_of(ask(), {}).plan.error().code(), ErrorCode::unavailable);
}

TEST(Plan, AnAdapterGoesOnlyWhereItIsServed) {
    auto targets = four_tiers();
    EXPECT_EQ(plan_of(ask(), targets, {"", "law", false}).plan.error().code(),
              ErrorCode::not_found);
    targets[0].adapters = {"law"};
    const Planned planned = plan_of(ask(), targets, {"", "law", false});
    ASSERT_EQ(planned.steps(), "home");
    EXPECT_EQ(planned.plan->steps[0].adapter, "law");
}

class HealthTest : public ::testing::Test {
protected:
    bool available(milliseconds* retry_after = nullptr) {
        TargetView seen = view("a", Tier::t1);
        health_.look(seen);
        if (retry_after != nullptr) *retry_after = seen.retry_after;
        return seen.available;
    }
    void fail_times(int times, ErrorCode code = ErrorCode::unavailable) {
        for (int i = 0; i < times; ++i)
            health_.failed("a", Error(code, "x"));
    }

    StoppedClock clock_;
    Options options_;
    Health health_{options_, clock_};
};

TEST_F(HealthTest, OpensAfterConsecutiveFailuresAndLetsOneTrialThrough) {
    fail_times(2);
    EXPECT_TRUE(available());
    health_.succeeded("a", milliseconds(1), milliseconds(2), 2);
    fail_times(3);
    milliseconds wait{};
    EXPECT_FALSE(available(&wait));
    EXPECT_EQ(wait, options_.open_for);
    EXPECT_FALSE(health_.admit("a"));
    clock_.advance(options_.open_for);
    EXPECT_TRUE(available());
    EXPECT_TRUE(health_.admit("a"));
    EXPECT_FALSE(health_.admit("a"));
    EXPECT_FALSE(available());
    fail_times(1);
    EXPECT_FALSE(available());
    clock_.advance(options_.open_for);
    EXPECT_TRUE(health_.admit("a"));
    health_.succeeded("a", milliseconds(1), milliseconds(2), 2);
    EXPECT_TRUE(health_.admit("a"));
    EXPECT_TRUE(health_.admit("a"));
}

TEST_F(HealthTest, ATrialThatWasCancelledMakesRoomForTheNext) {
    fail_times(3);
    clock_.advance(options_.open_for);
    EXPECT_TRUE(health_.admit("a"));
    health_.failed("a", Error(ErrorCode::cancelled, "x"));
    EXPECT_TRUE(health_.admit("a"));
}

TEST_F(HealthTest, TheCallersFaultsDoNotCount) {
    fail_times(5, ErrorCode::invalid_request);
    fail_times(5, ErrorCode::cancelled);
    EXPECT_TRUE(available());
}

TEST_F(HealthTest, RetryAfterIsRespectedAtOnce) {
    health_.failed("a", Error(ErrorCode::rate_limited, "x").retry_after(seconds(30)));
    milliseconds wait{};
    EXPECT_FALSE(available(&wait));
    EXPECT_EQ(wait, seconds(30));
    clock_.advance(seconds(30));
    EXPECT_TRUE(available());
}

TEST_F(HealthTest, LatencyIsAMovingAverage) {
    health_.succeeded("a", milliseconds(100), milliseconds(1100), 11);
    TargetView seen = view("a", Tier::t1);
    health_.look(seen);
    EXPECT_DOUBLE_EQ(seen.first_token_ms, 100);
    EXPECT_DOUBLE_EQ(seen.token_ms, 100);
    health_.succeeded("a", milliseconds(200), milliseconds(200), 1);
    health_.look(seen);
    EXPECT_DOUBLE_EQ(seen.first_token_ms, 120);
    EXPECT_DOUBLE_EQ(seen.token_ms, 100);
}

TEST_F(HealthTest, AMeasurementThatNobodyRenewsIsForgotten) {
    health_.succeeded("a", seconds(9), seconds(10), 2);
    const auto first_token = [&] {
        TargetView seen = view("a", Tier::t1);
        health_.look(seen);
        return seen.first_token_ms;
    };
    EXPECT_DOUBLE_EQ(first_token(), 9000);
    clock_.advance(options_.latency_half_life);
    EXPECT_NEAR(first_token(), 4550, 1);  // half way back to the declared 100
    clock_.advance(20 * options_.latency_half_life);
    EXPECT_NEAR(first_token(), 100, 1);
}

TEST_F(HealthTest, TheSlowestOfTwentyIsKnownOnceTwentyWereSeen) {
    for (int i = 1; i <= 19; ++i)
        health_.succeeded("a", milliseconds(10 * i), milliseconds(1000), 10);
    EXPECT_FALSE(health_.slow_first_token("a"));
    health_.succeeded("a", milliseconds(200), milliseconds(1000), 10);
    EXPECT_EQ(health_.slow_first_token("a"), milliseconds(200));
    EXPECT_FALSE(health_.slow_first_token("b"));
    // Old ones make room.
    for (int i = 0; i < 64; ++i)
        health_.succeeded("a", milliseconds(7), milliseconds(1000), 10);
    EXPECT_EQ(health_.slow_first_token("a"), milliseconds(7));
}

TEST_F(HealthTest, OneThatWasGivenUpIsAsSlowAsItWasWaitedForAtLeast) {
    health_.succeeded("a", milliseconds(100), milliseconds(1000), 10);
    health_.lagged("a", milliseconds(50));  // says nothing new
    TargetView seen = view("a", Tier::t1);
    health_.look(seen);
    EXPECT_NEAR(seen.first_token_ms, 100, 1e-6);
    health_.lagged("a", milliseconds(1100));
    health_.look(seen);
    EXPECT_NEAR(seen.first_token_ms, 300, 1e-6);
}

}  // namespace
}  // namespace molly::router
