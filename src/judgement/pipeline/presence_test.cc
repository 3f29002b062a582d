#include "pipeline/presence.h"

#include <map>
#include <optional>
#include <string>

#include <gtest/gtest.h>

namespace molly::pipeline {
namespace {

using Serving = router::Moment::Serving;
using domain::Sensitivity;
using domain::Tier;

/// A target whose adapters are what the test says, and which counts how often it is asked.
class Shelf final : public targets::Target {
public:
    using Target::Target;

    Result<domain::Label> adapter_label(std::string_view asked) const override {
        ++asked_count;
        if (trouble) return fail(*trouble, "scripted");
        const auto found = labels.find(asked);
        if (found == labels.end()) return Target::adapter_label(asked);
        return found->second;
    }
    std::uint64_t adapters_version() const override { return version; }
    std::uint32_t queue_depth() const noexcept override { return 0; }
    Task<Result<void>> probe(const policy::Permit&) override { co_return Result<void>(); }

    std::map<std::string, domain::Label, std::less<>> labels;
    std::uint64_t version = 1;
    std::optional<ErrorCode> trouble;
    mutable int asked_count = 0;
};

std::shared_ptr<const domain::TargetSpec> spec_of(const std::string& id, Tier tier) {
    auto spec = std::make_shared<domain::TargetSpec>();
    spec->id = id;
    spec->tier = tier;
    for (const char* adapter : {"law", "tax"}) {
        domain::Specialist one;
        one.adapter = adapter;
        spec->specialists.push_back(std::move(one));
    }
    return spec;
}

class PresenceTest : public ::testing::Test {
protected:
    static policy::ClearedRequest request_of(Sensitivity sensitivity) {
        domain::AnnotatedRequest asked;
        asked.label.sensitivity = sensitivity;
        return *policy::PolicyEngine({}).clear(std::move(asked));
    }
    router::Moment look(Sensitivity sensitivity = Sensitivity::private_) {
        router::Moment moment;
        presence_.look(request_of(sensitivity), policy_, moment);
        return moment;
    }
    static domain::Label label(Sensitivity sensitivity, std::string origin = "corpus:a") {
        domain::Label label;
        label.sensitivity = sensitivity;
        label.origins = {std::move(origin)};
        return label;
    }
    Serving serving(const router::Moment& moment, const Shelf& shelf, std::string_view adapter) {
        return moment.pairs[roster_.find(shelf.spec().id, adapter)];
    }

    Shelf home_{spec_of("home", Tier::t0)};
    Shelf office_{spec_of("office", Tier::t1)};
    router::Roster roster_{{home_.shared_spec(), office_.shared_spec()}, nullptr};
    policy::PolicyEngine policy_{policy::Options()};
    Presence presence_{{&home_, &office_}, roster_};
};

TEST_F(PresenceTest, LooksOnceUntilSomethingChanges) {
    home_.labels["law"] = label(Sensitivity::public_);
    EXPECT_EQ(serving(look(), home_, "law"), Serving::yes);
    EXPECT_EQ(serving(look(), home_, "tax"), Serving::no);
    EXPECT_EQ(serving(look(), home_, ""), Serving::yes);
    EXPECT_EQ(home_.asked_count, 2);
    home_.labels["tax"] = label(Sensitivity::public_);
    ++home_.version;
    EXPECT_EQ(serving(look(), home_, "tax"), Serving::yes);
    EXPECT_EQ(home_.asked_count, 4);
    home_.labels.erase("law");
    ++home_.version;
    EXPECT_EQ(serving(look(), home_, "law"), Serving::no);
}

TEST_F(PresenceTest, AChangeOfOneTargetIsSeenBesideOthers) {
    std::ignore = look();
    office_.labels["law"] = label(Sensitivity::public_);
    ++office_.version;
    EXPECT_EQ(serving(look(), office_, "law"), Serving::yes);
    EXPECT_EQ(serving(look(), home_, "law"), Serving::no);
}

TEST_F(PresenceTest, WhatCouldNotBeReadIsLookedForAgain) {
    home_.labels["law"] = label(Sensitivity::public_);
    home_.trouble = ErrorCode::unavailable;
    EXPECT_EQ(serving(look(), home_, "law"), Serving::no);
    home_.trouble = std::nullopt;
    EXPECT_EQ(serving(look(), home_, "law"), Serving::yes);
}

TEST_F(PresenceTest, ALabelKeepsAnAdapterFromWhereItMayNotAnswer) {
    for (Shelf* shelf : {&home_, &office_}) {
        shelf->labels["law"] = label(Sensitivity::secret);
        shelf->labels["tax"] = label(Sensitivity::private_, "corpus:b");
    }
    const router::Moment moment = look();
    EXPECT_EQ(serving(moment, home_, "law"), Serving::yes);
    EXPECT_EQ(serving(moment, office_, "law"), Serving::denied);
    EXPECT_EQ(serving(moment, office_, "tax"), Serving::yes);
    ASSERT_EQ(moment.denied.size(), 1U);
    EXPECT_NE(moment.denied.begin()->second.find("learned from secret"), std::string::npos);
    // A request that is secret itself is kept by its own permit, not by the adapter's label.
    EXPECT_TRUE(look(Sensitivity::secret).denied.empty());
}

TEST_F(PresenceTest, WhereTheRulesForbidTheJoinedLabelNobodyMayAnswer) {
    home_.labels["law"] = label(Sensitivity::public_);
    home_.labels["law"].residency = domain::Residency({"IT"});
    domain::AnnotatedRequest asked;
    asked.label.residency = domain::Residency({"US"});
    const auto cleared = policy::PolicyEngine({}).clear(std::move(asked));
    if (!cleared) GTEST_SKIP() << "no target satisfies the request itself";
    router::Moment moment;
    presence_.look(*cleared, policy_, moment);
    EXPECT_EQ(serving(moment, home_, "law"), Serving::denied);
}

}  // namespace
}  // namespace molly::pipeline
