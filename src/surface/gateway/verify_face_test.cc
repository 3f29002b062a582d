// Drafts of another device, at the door: who may send them, and what is said of those that cannot
// be checked.
#include <map>

#include "engine/cooperation.h"
#include "gateway/gateway_fixture.h"

namespace molly::gateway {
namespace {

using namespace fixture;  // NOLINT(google-build-using-namespace): the cast of these tests
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// Accepts every token but the last.
class ScriptedVerification final : public engine::Verification {
public:
    Result<void> serve(std::string request_id) override {
        served = std::move(request_id);
        return {};
    }
    Task<Result<engine::Checked>> check(engine::DraftBlock block) override {
        if (block.from > 100)
            co_return fail(ErrorCode::invalid_request, "the answer has 100 tokens");
        engine::Checked checked;
        checked.tokens = block.tokens;
        if (!checked.tokens.empty()) checked.tokens.back() = 77;
        checked.accepted =
            static_cast<std::uint32_t>(std::max<std::size_t>(1, block.tokens.size()) - 1);
        checked.ended = block.alone;
        checked.check_ms = 2;
        checked.step_ms = 1;
        co_return checked;
    }
    std::string served;
};

class CheckingEngine final : public engine::Engine {
public:
    Task<Result<void>> generate(const domain::Request&, engine::DeltaSink&) override {
        co_return fail(ErrorCode::internal, "nobody asks this engine");
    }
    Task<Result<engine::Embeddings>> embed(const domain::Request&) override {
        co_return fail(ErrorCode::internal, "nobody asks this engine");
    }
    Result<std::shared_ptr<engine::Verification>> verify(engine::VerificationTerms asked) override {
        if (asked.vocabulary != "mine") return fail(ErrorCode::conflict, "another vocabulary");
        terms = asked;
        session = std::make_shared<ScriptedVerification>();
        return session;
    }
    std::shared_ptr<engine::Verification> verification(const std::string& id,
                                                       const std::string& owner) const override {
        return id == terms.id && owner == terms.owner ? session : nullptr;
    }
    const engine::Description& describe() const noexcept override { return description; }
    engine::Load load() const noexcept override { return {}; }

    engine::Description description;
    engine::VerificationTerms terms;
    std::shared_ptr<ScriptedVerification> session;
};

class VerifyFaceTest : public GatewayTest {
protected:
    VerifyFaceTest() {
        engine_ = &checking_;
        build({});
    }
    Reply verify(std::string body, std::string key = "admin") {
        return call("POST", "/molly/v1/verify", std::move(body), {}, std::move(key));
    }
    std::string open() {
        const Reply reply = verify(R"({"vocabulary":"mine","wait":true})");
        EXPECT_EQ(reply.status, 200) << reply.body;
        const auto body = parse_json(reply.body);
        EXPECT_EQ(body->at("draft_tokens_max").to_number<int>(), 32);
        EXPECT_EQ(body->at("wait_ms").to_number<int>(), 1000);
        return json::value_to<std::string>(body->at("session"));
    }
    CheckingEngine checking_;
};

TEST_F(VerifyFaceTest, OpensASessionAndChecksBlocks) {
    const std::string session = open();
    EXPECT_THAT(session, StartsWith("ver_"));
    EXPECT_EQ(checking_.terms.id, session);
    EXPECT_EQ(checking_.terms.owner, "owner");
    EXPECT_TRUE(checking_.terms.waits);
    const Reply reply = verify(R"({"session":")" + session + R"(","from":3,"draft":[1,2,3]})");
    ASSERT_EQ(reply.status, 200) << reply.body;
    EXPECT_THAT(reply.body, HasSubstr(R"("accepted":2,"tokens":[1,2,77],"ended":false)"));
    EXPECT_THAT(reply.body, HasSubstr(R"("check_ms":2)"));
    EXPECT_THAT(verify(R"({"session":")" + session + R"(","alone":true})").body,
                HasSubstr(R"("ended":true)"));
}

TEST_F(VerifyFaceTest, TheRequestThatNamesTheSessionIsTheOneThatIsChecked) {
    const std::string session = open();
    const Reply reply = call("POST", "/v1/chat/completions",
                             R"({"model":"small","messages":[{"role":"user","content":"hi"}]})",
                             {{"x-molly-drafts", session}});
    ASSERT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(checking_.session->served, reply.header("x-molly-receipt"));
    // Whoever names none that there is gets the answer all the same.
    const Reply unknown = call("POST", "/v1/chat/completions",
                               R"({"model":"small","messages":[{"role":"user","content":"hi"}]})",
                               {{"x-molly-drafts", "ver_unknown"}});
    EXPECT_EQ(unknown.status, 200) << unknown.body;
}

TEST_F(VerifyFaceTest, ASessionBelongsToTheMemberThatOpenedIt) {
    const std::string session = open();
    members::Scope scope;
    scope.member = "anna";
    const members::NewKey anna = make_key(&admin_.key, scope);
    const Reply reply = verify(R"({"session":")" + session + R"(","draft":[1]})", anna.text);
    EXPECT_EQ(reply.status, 404) << reply.body;
    EXPECT_THAT(reply.body, HasSubstr("open one"));
    const Reply chat = call("POST", "/v1/chat/completions",
                            R"({"model":"small","messages":[{"role":"user","content":"hi"}]})",
                            {{"x-molly-drafts", session}}, anna.text);
    EXPECT_EQ(chat.status, 200) << chat.body;
    EXPECT_EQ(checking_.session->served, "");
}

TEST_F(VerifyFaceTest, WhatIsWrongIsSaidWithTheCure) {
    EXPECT_EQ(verify(R"({"vocabulary":"mine"})", "").status, 401);
    EXPECT_EQ(verify(R"({"vocabulary":"theirs"})").status, 409);
    EXPECT_EQ(verify("{").status, 400);
    EXPECT_EQ(verify("{}").status, 400);
    const std::string session = open();
    EXPECT_EQ(verify(R"({"session":")" + session + R"(","draft":["a"]})").status, 400);
    EXPECT_EQ(verify(R"({"session":")" + session + R"(","from":101})").status, 400);
    EXPECT_EQ(verify(R"({"session":"ver_1"})").status, 404);
    EXPECT_EQ(call("GET", "/molly/v1/verify").status, 405);
    engine_ = nullptr;
    build({});
    const Reply none = verify(R"({"vocabulary":"mine"})");
    EXPECT_EQ(none.status, 400) << none.body;
    EXPECT_THAT(none.body, HasSubstr("without drafts"));
}

}  // namespace
}  // namespace molly::gateway
