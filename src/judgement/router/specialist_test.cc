#include <gtest/gtest.h>

#include "base/coroutine.h"
#include "policy/policy_engine.h"
#include "router/router.h"

namespace molly::router {
namespace {

using domain::Field;
using domain::Tier;

class StillClock final : public Clock {
public:
    MonoTime now() const noexcept override { return {}; }
    WallTime wall() const noexcept override { return WallTime(std::chrono::hours(500'000)); }
    Task<void> sleep_until(MonoTime /*when*/) override { co_return; }
};

class SpecialistTest : public ::testing::Test {
protected:
    SpecialistTest() {
        add("home", Tier::t0, 0.3, {"law"});
        add("office", Tier::t1, 0.6, {});
        specs_[0]->specialists.push_back({.adapter = "law",
                                          .field = Field::humanities,
                                          .quality = 0.7,
                                          .threshold = 0.6,
                                          .prompt_tokens_max = 1000,
                                          .difficulty_max = 0.8});
    }

    void add(std::string id, Tier tier, double quality, std::vector<std::string> adapters) {
        auto spec = std::make_shared<domain::TargetSpec>();
        spec->id = std::move(id);
        spec->tier = tier;
        spec->quality = quality;
        spec->tokens_per_second = 1000;
        TargetView view;
        view.spec = spec;
        view.adapters = std::move(adapters);
        specs_.push_back(spec);
        views_.push_back(std::move(view));
    }

    std::string first(Field field, double difficulty = 0.2, std::uint32_t tokens = 100) {
        domain::AnnotatedRequest annotated;
        annotated.request.caller.key_id = "k1";
        annotated.capability.prompt_tokens = tokens;
        annotated.capability.answer_tokens = 10;
        annotated.capability.classified = true;
        annotated.capability.fields[static_cast<std::size_t>(field)] = 1;
        annotated.capability.difficulty = static_cast<float>(difficulty);
        needs_ = annotated.capability;
        const policy::PolicyEngine engine({});
        const auto cleared = engine.clear(std::move(annotated));
        const auto made = plan(*cleared, {}, views_, {}, decision_, &estimates_, shares_);
        if (!made) return made.error().reason();
        const Plan::Step& step = made->steps.front();
        return step.target->id + (step.adapter.empty() ? "" : "/" + step.adapter);
    }

    void judge(const std::string& target, const std::string& adapter, double score, int times) {
        for (int i = 0; i < times; ++i)
            std::ignore = estimates_.learn(target, adapter, needs_, score, 1);
    }

    StillClock clock_;
    Estimates estimates_{{}, clock_};
    std::vector<std::shared_ptr<domain::TargetSpec>> specs_;
    std::vector<TargetView> views_;
    std::vector<SpecialistShare> shares_;
    domain::CapabilityProfile needs_;
    domain::Decision decision_;
};

TEST_F(SpecialistTest, ServesItsFieldFirstAndNoOther) {
    EXPECT_EQ(first(Field::humanities), "home/law");
    EXPECT_TRUE(decision_.candidates.front().specialist);
    EXPECT_EQ(first(Field::medicine), "office");
}

TEST_F(SpecialistTest, ServesWhatIsLikeItsPromptsWhateverTheField) {
    shares_ = {{.target = "home", .adapter = "law", .share = 0.9, .least = 0.5}};
    EXPECT_EQ(first(Field::medicine, 0.9), "office");
    EXPECT_EQ(first(Field::medicine), "home/law");
    shares_[0].share = 0.4;
    EXPECT_EQ(first(Field::medicine), "office");
    shares_[0].share = 0.9;
    judge("home", "law", 0, 12);
    EXPECT_EQ(first(Field::medicine), "office");
}

TEST_F(SpecialistTest, DeclaredLimitsSendTheRequestElsewhere) {
    EXPECT_EQ(first(Field::humanities, 0.9), "office");
    EXPECT_EQ(first(Field::humanities, 0.2, 1001), "office");
    const auto law = std::find_if(decision_.candidates.begin(), decision_.candidates.end(),
                                  [](const auto& one) { return one.adapter == "law"; });
    ASSERT_NE(law, decision_.candidates.end());
    EXPECT_NE(law->excluded_by.find("1001"), std::string::npos);
}

TEST_F(SpecialistTest, OneThatDisappointsLosesItsPlaceAndGetsItBack) {
    EXPECT_EQ(first(Field::humanities), "home/law");
    judge("home", "law", 0, 12);
    EXPECT_EQ(first(Field::humanities), "office");
    judge("home", "law", 1, 60);
    EXPECT_EQ(first(Field::humanities), "home/law");
}

TEST_F(SpecialistTest, JudgedAnswersReorderTargets) {
    EXPECT_EQ(first(Field::science), "office");
    judge("office", "", 0, 40);
    judge("home", "", 1, 40);
    EXPECT_EQ(first(Field::science), "home");
    EXPECT_GT(decision_.candidates.front().evidence, 39);
    EXPECT_LT(decision_.candidates.front().quality, decision_.candidates.front().mean);
    EXPECT_EQ(first(Field::arts), "office");
}

}  // namespace
}  // namespace molly::router
