#include <gmock/gmock.h>

#include "pipeline/internal/pipeline_fixture.h"

namespace molly::pipeline {
namespace {

using domain::Sensitivity;
using domain::Tier;
using scripted::PipelineTest;
using scripted::says;

class DeclassifyTest : public PipelineTest {
protected:
    Result<domain::Trace> lower(Sensitivity to, std::string reason = "the release is out",
                                std::string conversation = "anna/case") {
        domain::Declassification act;
        act.to = to;
        act.reason = std::move(reason);
        boost::asio::io_context io;
        std::optional<Result<domain::Trace>> result;
        Pipeline& pipe = pipeline();
        spawn(io.get_executor(), [&]() -> Task<void> {
            result = co_await pipe.declassify(std::move(act), std::move(conversation), key);
        });
        io.run();
        return *std::move(result);
    }
    /// A turn of the conversation, declared as `sensitivity`.
    void say(Sensitivity sensitivity) {
        domain::Request turn = request();
        turn.extensions.sensitivity = sensitivity;
        turn.extensions.conversation = "case";
        ASSERT_TRUE(run(std::move(turn)));
    }
    void SetUp() override {
        add("home", Tier::t0, 0.5, says("ok"));
        key.id = "k9";
        key.scope.member = "anna";
        key.scope.declassify = Sensitivity::standard;
    }
};

TEST_F(DeclassifyTest, LowersWhatSticksAndLeavesItsTrace) {
    say(Sensitivity::secret);
    const auto act = lower(Sensitivity::private_);
    ASSERT_TRUE(act) << act.error().message();
    EXPECT_EQ(act->lowered->from, Sensitivity::secret);
    EXPECT_EQ(trace().id, act->id);
    EXPECT_EQ(trace().key_id, "k9");
    EXPECT_EQ(trace().lowered->reason, "the release is out");
    say(Sensitivity::private_);
    EXPECT_EQ(trace().label.sensitivity, Sensitivity::private_);
}

TEST_F(DeclassifyTest, NeedsTheScopeAndGoesNoLowerThanIt) {
    say(Sensitivity::secret);
    EXPECT_EQ(lower(Sensitivity::public_).error().reason(), "declassify_not_in_scope");
    key.scope.declassify.reset();
    EXPECT_EQ(lower(Sensitivity::private_).error().reason(), "declassify_not_in_scope");
    key.scope.admin = true;  // to administer is not to declassify
    EXPECT_EQ(lower(Sensitivity::private_).error().code(), ErrorCode::denied);
    EXPECT_EQ(store.labels.at("anna/case").sensitivity, Sensitivity::secret);
}

TEST_F(DeclassifyTest, AnothersConversationTakesAnAdmin) {
    say(Sensitivity::secret);
    key.scope.member = "bob";
    EXPECT_EQ(lower(Sensitivity::private_).error().code(), ErrorCode::denied);
    key.scope.admin = true;
    EXPECT_TRUE(lower(Sensitivity::private_));
}

TEST_F(DeclassifyTest, NeedsAReasonThatIsShort) {
    say(Sensitivity::secret);
    EXPECT_EQ(lower(Sensitivity::private_, " \n").error().param(), "reason");
    EXPECT_EQ(lower(Sensitivity::private_, std::string(501, 'x')).error().param(), "reason");
    EXPECT_EQ(store.appended.size(), 1U);
}

TEST_F(DeclassifyTest, AnUnknownConversationOrALowerOneIsRefused) {
    EXPECT_EQ(lower(Sensitivity::standard).error().code(), ErrorCode::not_found);
    say(Sensitivity::private_);
    EXPECT_EQ(lower(Sensitivity::private_).error().code(), ErrorCode::conflict);
}

TEST_F(DeclassifyTest, WhatCannotBeRecordedDidNotHappen) {
    say(Sensitivity::secret);
    store.append_fails = true;
    EXPECT_FALSE(lower(Sensitivity::private_));
    EXPECT_EQ(store.labels.at("anna/case").sensitivity, Sensitivity::secret);
}

}  // namespace
}  // namespace molly::pipeline
