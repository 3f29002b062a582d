#include "dialects/drafts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace molly::dialects {
namespace {

using ::testing::HasSubstr;

TEST(DraftsTest, CallsComeBackAsTheyWere) {
    DraftCall open;
    open.vocabulary = "00ff";
    open.waits = true;
    auto back = decode_draft_call(encode_draft_call(open), {});
    ASSERT_TRUE(back) << back.error().message();
    EXPECT_TRUE(back->session.empty());
    EXPECT_EQ(back->vocabulary, "00ff");
    EXPECT_TRUE(back->waits);

    DraftCall block;
    block.session = "ver_1";
    block.from = 7;
    block.tokens = {0, 5, 2147483647};
    back = decode_draft_call(encode_draft_call(block), {});
    ASSERT_TRUE(back) << back.error().message();
    EXPECT_EQ(back->session, "ver_1");
    EXPECT_EQ(back->from, 7U);
    EXPECT_EQ(back->tokens, block.tokens);
    EXPECT_FALSE(back->alone);
    block.alone = true;
    EXPECT_TRUE(decode_draft_call(encode_draft_call(block), {})->alone);
}

TEST(DraftsTest, RepliesComeBackAsTheyWere) {
    DraftSession session;
    session.id = "ver_1";
    session.draft_tokens_max = 32;
    session.patience = std::chrono::milliseconds(1000);
    const auto opened = decode_draft_session(encode_draft_session(session));
    ASSERT_TRUE(opened) << opened.error().message();
    EXPECT_EQ(opened->id, "ver_1");
    EXPECT_EQ(opened->draft_tokens_max, 32U);
    EXPECT_EQ(opened->patience, session.patience);

    DraftVerdict verdict;
    verdict.accepted = 2;
    verdict.tokens = {4, 5, 6};
    verdict.ended = true;
    verdict.check_ms = 1.5;
    verdict.step_ms = 0.25;
    const auto back = decode_draft_verdict(encode_draft_verdict(verdict));
    ASSERT_TRUE(back) << back.error().message();
    EXPECT_EQ(back->accepted, 2U);
    EXPECT_EQ(back->tokens, verdict.tokens);
    EXPECT_TRUE(back->ended);
    EXPECT_DOUBLE_EQ(back->check_ms, 1.5);
    EXPECT_DOUBLE_EQ(back->step_ms, 0.25);
}

void expect_refused(const char* body, const char* field) {
    const auto refused = decode_draft_call(body, {});
    ASSERT_FALSE(refused) << body;
    EXPECT_EQ(refused.error().code(), ErrorCode::invalid_request) << body;
    EXPECT_THAT(refused.error().message(), HasSubstr(field)) << body;
}

TEST(DraftsTest, WhatIsWrongIsNamed) {
    expect_refused("[]", "object");
    expect_refused("{}", "vocabulary");
    expect_refused(R"({"vocabulary":7})", "vocabulary");
    expect_refused(R"({"vocabulary":"a","wait":1})", "wait");
    expect_refused(R"({"session":7})", "session");
    expect_refused(R"({"session":"s","from":-1})", "from");
    expect_refused(R"({"session":"s","from":1.5})", "from");
    expect_refused(R"({"session":"s","draft":"1"})", "draft");
    expect_refused(R"({"session":"s","draft":[1,-2]})", "draft");
    expect_refused(R"({"session":"s","draft":[1,"2"]})", "draft");
    expect_refused(R"({"session":"s","draft":[2147483648]})", "draft");
    expect_refused(R"({"session":"s","alone":"yes"})", "alone");
}

TEST(DraftsTest, ABrokenReplyIsTheOtherNodesFault) {
    for (const char* body : {"", "{", "[]", "{}", R"({"session":""})"}) {
        const auto session = decode_draft_session(body);
        ASSERT_FALSE(session) << body;
        EXPECT_EQ(session.error().code(), ErrorCode::upstream_failed) << body;
    }
    for (const char* body : {"", "[]", R"({"accepted":2,"tokens":[1]})", R"({"tokens":[-1]})"}) {
        const auto verdict = decode_draft_verdict(body);
        ASSERT_FALSE(verdict) << body;
        EXPECT_EQ(verdict.error().code(), ErrorCode::upstream_failed) << body;
    }
}

}  // namespace
}  // namespace molly::dialects
