// One node drafts, another answers: what goes over the wire, and what becomes of it when the other
// node does not play along.
#include <deque>
#include <functional>

#include <boost/asio/io_context.hpp>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/coroutine.h"
#include "base/promise.h"
#include "dialects/drafts.h"
#include "policy/policy_engine.h"
#include "targets/target.h"

namespace molly::targets {
namespace {

using domain::Tier;
using Tokens = std::vector<std::int32_t>;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Another Molly that answers tokens 0, 1, 2, ... as its drafter checks them, and says "hello" when
/// the answer is complete.
class OtherNode final : public net::Connector {
public:
    Task<Result<void>> exchange(const policy::Permit& permit, const domain::TargetSpec& target,
                                net::OutboundRequest request, net::ReplySink& sink,
                                net::Wire& wire) override {
        CO_TRY_DO(permit.check(target));
        paths.push_back(target.endpoint.path + request.path);
        wire.bytes_sent = request.body.size();
        wire.body_accepted = true;
        if (request.path != "/molly/v1/verify") co_return co_await answer(request, sink, wire);
        if (verify_error) co_return fail(*verify_error);
        auto call = dialects::decode_draft_call(request.body, {});
        EXPECT_TRUE(call);
        if (verify_status != 200) co_return co_await say(verify_status, "{}", sink, wire);
        if (call->session.empty()) {
            vocabulary = call->vocabulary;
            waits = call->waits;
            dialects::DraftSession opened;
            opened.id = "ver_1";
            opened.draft_tokens_max = 4;
            co_return co_await say(200, dialects::encode_draft_session(opened), sink, wire);
        }
        if (call->alone) {
            went_alone = true;
            complete->set(true);
            co_return co_await say(200, R"({"accepted":0,"tokens":[]})", sink, wire);
        }
        co_return co_await say(200, check(*call), sink, wire);
    }

    std::string check(const dialects::DraftCall& call) {
        EXPECT_EQ(call.from, came);
        dialects::DraftVerdict verdict;
        for (const std::int32_t token : call.tokens) {
            if (token != static_cast<std::int32_t>(came)) break;
            verdict.tokens.push_back(token);
            ++verdict.accepted;
            ++came;
        }
        verdict.tokens.push_back(static_cast<std::int32_t>(came++));
        verdict.ended = came >= length;
        verdict.check_ms = check_ms;
        verdict.step_ms = step_ms;
        ++blocks;
        if (verdict.ended) complete->set(true);
        return dialects::encode_draft_verdict(verdict);
    }

    Task<Result<void>> answer(const net::OutboundRequest& request, net::ReplySink& sink,
                              net::Wire& wire) {
        session = net::header(request.headers, dialects::drafts_header);
        if (!session.empty()) co_await complete->wait();
        const net::Headers headers = {{"content-type", "text/event-stream"}};
        CO_TRY_DO(co_await sink.head(200, headers));
        std::string text =
            R"(data: {"id":"1","model":"big","choices":[{"index":0,"delta":{"content":"hello"}}]})";
        text += "\n\n";
        if (dies) {
            CO_TRY_DO(co_await sink.piece(text));
            co_return fail(ErrorCode::upstream_failed, "it died");
        }
        text +=
            R"(data: {"id":"1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":20,"total_tokens":23}})";
        text += "\n\ndata: [DONE]\n\n";
        wire.bytes_received += text.size();
        co_return co_await sink.piece(text);
    }

    static Task<Result<void>> say(int status, std::string body, net::ReplySink& sink,
                                  net::Wire& wire) {
        const net::Headers headers = {{"content-type", "application/json"}};
        CO_TRY_DO(co_await sink.head(status, headers));
        wire.bytes_received += body.size();
        co_return co_await sink.piece(body);
    }

    int verify_status = 200;
    std::optional<Error> verify_error;
    std::uint32_t length = 20;
    bool dies = false;
    double check_ms = 0;
    double step_ms = 0;
    std::uint32_t came = 0;
    int blocks = 0;
    bool went_alone = false;
    bool waits = false;
    std::string vocabulary;
    std::string session;
    std::vector<std::string> paths;
    std::shared_ptr<Promise<bool>> complete = std::make_shared<Promise<bool>>();
};

/// Drafts the numbers that follow, but every `wrong`th one is another.
class CountingDrafting final : public engine::Drafting {
public:
    explicit CountingDrafting(std::int32_t wrong) : wrong_(wrong) {}
    Task<Result<Tokens>> propose(Tokens came, std::uint32_t most) override {
        if (gone_) co_return fail(ErrorCode::cancelled, "given up");
        next_ += static_cast<std::int32_t>(came.size());
        Tokens tokens;
        for (std::int32_t i = 0; i < static_cast<std::int32_t>(most); ++i) {
            const std::int32_t token = next_ + i;
            tokens.push_back(wrong_ > 0 && token % wrong_ == wrong_ - 1 ? 1000 : token);
        }
        co_return tokens;
    }
    void give_up() override { gone_ = true; }

private:
    const std::int32_t wrong_;
    std::int32_t next_ = 0;
    bool gone_ = false;
};

class DraftingEngine final : public engine::Engine {
public:
    DraftingEngine() { description.vocabulary = "abc"; }
    Task<Result<void>> generate(const domain::Request&, DeltaSink&) override {
        co_return fail(ErrorCode::internal, "this engine only drafts");
    }
    Task<Result<engine::Embeddings>> embed(const domain::Request&) override {
        co_return fail(ErrorCode::internal, "this engine only drafts");
    }
    Result<std::unique_ptr<engine::Drafting>> draft(const domain::Request&) override {
        ++asked;
        if (busy) return fail(ErrorCode::exhausted, "busy");
        return std::make_unique<CountingDrafting>(wrong);
    }
    const engine::Description& describe() const noexcept override { return description; }
    engine::Load load() const noexcept override { return {}; }

    engine::Description description;
    bool busy = false;
    std::int32_t wrong = 0;
    int asked = 0;
};

class Collector final : public DeltaSink {
public:
    Task<Result<void>> write(const domain::Delta& delta) override {
        text += delta.text;
        co_return Result<void>();
    }
    std::string text;
};

class CooperationTest : public ::testing::Test {
protected:
    CooperationTest() {
        spec_ = std::make_shared<domain::TargetSpec>();
        spec_->id = "studio";
        spec_->tier = Tier::t1;
        spec_->endpoint.path = "/v1";
        spec_->drafts = domain::Drafts::always;
        auto here = std::make_shared<domain::TargetSpec>();
        here->id = "local";
        here->local = true;
        here->tier = Tier::t0;
        here_ = here;
        request_.stream = true;
        request_.messages.push_back(domain::text_message(domain::Role::user, "hi"));
    }

    Target& target() {
        if (!target_)
            target_ =
                make_remote_target(spec_, node_, "sk-key", {.engine = &engine_, .spec = here_});
        return *target_;
    }

    Result<domain::Response> run() {
        domain::AnnotatedRequest annotated;
        annotated.request = request_;
        const policy::PolicyEngine policy(options_);
        auto cleared =
            std::make_shared<const policy::ClearedRequest>(*policy.clear(std::move(annotated)));
        auto dispatch = policy::Dispatch::to(target().shared_spec(), "", cleared);
        EXPECT_TRUE(dispatch);
        std::optional<Result<domain::Response>> result;
        boost::asio::io_context io;
        report_ = {};
        spawn(io.get_executor(), [&]() -> Task<void> {
            result = co_await target().run(*std::move(dispatch), sink_, report_);
        });
        io.run();
        return *std::move(result);
    }

    void expect_plain() {
        sink_.text.clear();
        const auto response = run();
        ASSERT_TRUE(response) << response.error().message();
        EXPECT_EQ(sink_.text, "hello");
        EXPECT_EQ(report_.drafted, 0U);
        EXPECT_TRUE(node_.session.empty());
    }

    std::shared_ptr<domain::TargetSpec> spec_;
    std::shared_ptr<const domain::TargetSpec> here_;
    policy::Options options_;
    domain::Request request_;
    OtherNode node_;
    DraftingEngine engine_;
    std::unique_ptr<Target> target_;
    Collector sink_;
    Report report_;
};

TEST_F(CooperationTest, DraftsAreCheckedBesideTheRequest) {
    const auto response = run();
    ASSERT_TRUE(response) << response.error().message();
    EXPECT_EQ(sink_.text, "hello");
    EXPECT_EQ(response->usage.answer_tokens, 20U);
    EXPECT_EQ(node_.vocabulary, "abc");
    EXPECT_TRUE(node_.waits);
    EXPECT_EQ(node_.session, "ver_1");
    EXPECT_EQ(node_.blocks, 4);  // four drafted and one more, each
    EXPECT_EQ(report_.drafted, 16U);
    EXPECT_EQ(report_.accepted, 16U);
    EXPECT_EQ(node_.paths.front(), "/molly/v1/verify");
    EXPECT_EQ(std::ranges::count(node_.paths, "/v1/chat/completions"), 1);
    EXPECT_GT(report_.bytes_sent, 4 * 30U) << "the blocks left this device too";
}

TEST_F(CooperationTest, WrongDraftsCostBlocksAndNothingElse) {
    engine_.wrong = 3;
    const auto response = run();
    ASSERT_TRUE(response);
    EXPECT_EQ(sink_.text, "hello");
    EXPECT_GT(node_.blocks, 4);
    EXPECT_GT(report_.accepted, 0U);
    EXPECT_LT(report_.accepted, report_.drafted);
}

TEST_F(CooperationTest, ANodeThatDoesNotSpeakItIsAskedPlainlyAndNotAgain) {
    node_.verify_status = 404;
    spec_->drafts = domain::Drafts::measured;
    expect_plain();
    expect_plain();
    EXPECT_EQ(std::ranges::count(node_.paths, "/molly/v1/verify"), 1);
}

TEST_F(CooperationTest, AnotherVocabularyIsAskedPlainly) {
    node_.verify_status = 409;
    expect_plain();
}

TEST_F(CooperationTest, WhoCannotBeReachedIsNotAskedTwice) {
    node_.verify_error = Error(ErrorCode::unavailable, "nobody is there");
    const auto response = run();
    ASSERT_FALSE(response);
    EXPECT_EQ(response.error().code(), ErrorCode::unavailable);
    EXPECT_THAT(node_.paths, ElementsAre("/molly/v1/verify"));
}

TEST_F(CooperationTest, ABusyEngineDraftsNothing) {
    engine_.busy = true;
    expect_plain();
    EXPECT_THAT(node_.paths, ElementsAre("/v1/chat/completions"));
}

TEST_F(CooperationTest, WhatCannotBeDraftedIsAskedPlainly) {
    request_.tools.push_back({.name = "clock", .description = {}, .parameters = {}});
    expect_plain();
    request_.tools.clear();
    domain::Part picture;
    picture.kind = domain::Part::Kind::image;
    request_.messages.front().parts.push_back(picture);
    expect_plain();
    EXPECT_EQ(engine_.asked, 0);
}

// Drafting reads the content here: what a rule keeps from this device is not drafted on it.
TEST_F(CooperationTest, ContentThatMayNotBeHereIsNotDraftedHere) {
    policy::Rule rule;
    rule.name = "studio-only";
    rule.tiers = domain::TierSet{Tier::t1};
    options_.rules.push_back(rule);
    expect_plain();
    EXPECT_EQ(engine_.asked, 0);
}

TEST_F(CooperationTest, WhenTheOtherNodeDiesItIsAnyFailure) {
    node_.dies = true;
    const auto response = run();
    ASSERT_FALSE(response);
    EXPECT_EQ(response.error().code(), ErrorCode::upstream_failed);
    EXPECT_EQ(sink_.text, "hello");
    EXPECT_TRUE(report_.body_accepted);
}

TEST_F(CooperationTest, TheOtherNodeIsLeftAloneWhereItIsFaster) {
    spec_->drafts = domain::Drafts::measured;
    node_.length = 1000;
    node_.step_ms = 1e-6;  // nothing here is as fast
    const auto response = run();
    ASSERT_TRUE(response) << response.error().message();
    EXPECT_FALSE(node_.waits);
    EXPECT_TRUE(node_.went_alone);
    EXPECT_LT(node_.blocks, 10);
    EXPECT_GT(report_.drafted, 0U);
    node_.complete = std::make_shared<Promise<bool>>();
    node_.session.clear();
    expect_plain();
}

}  // namespace
}  // namespace molly::targets
