#include "targets/target.h"

#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include "base/coroutine.h"
#include "policy/policy_engine.h"

namespace molly::targets {
namespace {

using domain::Delta;
using domain::Tier;

/// What a scripted upstream replies.
struct Reply {
    int status = 200;
    net::Headers headers = {{"content-type", "text/event-stream"}};
    std::vector<std::string> pieces;
    std::optional<Error> error;  // after the pieces
};

class ScriptedConnector final : public net::Connector {
public:
    Task<Result<void>> exchange(const policy::Permit& permit, const domain::TargetSpec& target,
                                net::OutboundRequest request, net::ReplySink& sink,
                                net::Wire& wire) override {
        CO_TRY_DO(permit.check(target));
        wire.bytes_sent = request.body.size();
        wire.body_accepted = true;
        sent = std::move(request);
        if (reply.status != 0) CO_TRY_DO(co_await sink.head(reply.status, reply.headers));
        for (const std::string& piece : reply.pieces) {
            wire.bytes_received += piece.size();
            CO_TRY_DO(co_await sink.piece(piece));
        }
        if (reply.error) co_return fail(*reply.error);
        co_return Result<void>();
    }

    Reply reply;
    net::OutboundRequest sent;
};

class ScriptedEngine final : public engine::Engine {
public:
    Task<Result<void>> generate(const domain::Request& request, DeltaSink& sink) override {
        asked = request.extensions;
        Delta first;
        first.text = "ciao";
        CO_TRY_DO(co_await sink.write(first));
        Delta last;
        last.finish = domain::FinishReason::stop;
        last.prefix = "class_forbids";
        last.usage = domain::Usage{3, 1, 1, 0, domain::Usage::Source::engine};
        co_return co_await sink.write(last);
    }
    Task<Result<engine::Embeddings>> embed(const domain::Request&) override {
        engine::Embeddings embeddings;
        embeddings.vectors = {{1.0F}};
        embeddings.usage.prompt_tokens = 2;
        co_return embeddings;
    }
    const engine::Description& describe() const noexcept override { return description; }
    engine::Load load() const noexcept override { return {.running = 2, .waiting = 3}; }

    engine::Description description;
    domain::Extensions asked;
};

class Collector final : public DeltaSink {
public:
    Task<Result<void>> write(const Delta& delta) override {
        text += delta.text;
        ++count;
        if (gone) co_return fail(ErrorCode::cancelled, "the caller left");
        co_return Result<void>();
    }
    std::string text;
    int count = 0;
    bool gone = false;
};

class TargetTest : public ::testing::Test {
protected:
    std::shared_ptr<domain::TargetSpec> spec(domain::Dialect dialect = domain::Dialect::openai) {
        auto spec = std::make_shared<domain::TargetSpec>();
        spec->id = "office";
        spec->tier = Tier::t1;
        spec->dialect = dialect;
        spec->model = "big";
        return spec;
    }

    Result<domain::Response> run(Target& target, bool stream = true,
                                 domain::Operation operation = domain::Operation::chat) {
        return run_with(target, target.shared_spec(), stream, operation);
    }

    Result<domain::Response> run_with(Target& target, std::shared_ptr<const domain::TargetSpec> to,
                                      bool stream, domain::Operation operation) {
        domain::AnnotatedRequest annotated;
        annotated.request.operation = operation;
        annotated.request.stream = stream;
        annotated.request.inputs = {domain::Content("x")};
        annotated.request.extensions = extensions;
        annotated.label = label;
        annotated.request.messages.push_back(domain::text_message(domain::Role::user, "hi"));
        const policy::PolicyEngine policy({});
        auto cleared =
            std::make_shared<const policy::ClearedRequest>(*policy.clear(std::move(annotated)));
        auto dispatch = policy::Dispatch::to(std::move(to), "", cleared);
        std::optional<Result<domain::Response>> result;
        boost::asio::io_context io;
        spawn(io.get_executor(), [&]() -> Task<void> {
            result = co_await target.run(*std::move(dispatch), sink, report);
        });
        io.run();
        return *std::move(result);
    }

    void stream_of(std::string text, bool complete = true) {
        connector.reply.pieces = {
            R"(data: {"id":"1","model":"big-v2","choices":[{"index":0,"delta":{"content":")" +
            text + "\"}}]}\n\n"};
        if (!complete) return;
        connector.reply.pieces.push_back(
            "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n");
        connector.reply.pieces.push_back("data: [DONE]\n\n");
    }

    ScriptedConnector connector;
    ScriptedEngine engine;
    Collector sink;
    Report report;
    domain::Extensions extensions;
    domain::Label label;
};

TEST_F(TargetTest, TheEngineAnswersWithItsNamesAndItsUsage) {
    engine.description.name = "small";
    engine.description.hash = "abc";
    const auto local = make_local_target(spec(), engine);
    const auto response = run(*local);
    ASSERT_TRUE(response);
    EXPECT_EQ(sink.text, "ciao");
    EXPECT_EQ(response->model, "small");
    EXPECT_EQ(response->model_hash, "abc");
    EXPECT_EQ(response->usage.prompt_tokens, 3U);
    EXPECT_EQ(local->queue_depth(), 5U);
    EXPECT_EQ(run(*local, false, domain::Operation::embed)->embeddings.size(), 1U);
}

// What was found in a request counts, not what was declared.
TEST_F(TargetTest, TheEngineKeepsPrefixesByTheLabelThatHolds) {
    extensions.keep_prefix = domain::KeepPrefix::system;
    extensions.sensitivity = domain::Sensitivity::public_;
    label.sensitivity = domain::Sensitivity::secret;
    auto here = spec();
    here->tier = Tier::t0;
    const auto response = run(*make_local_target(here, engine));
    ASSERT_TRUE(response);
    EXPECT_EQ(engine.asked.keep_prefix, domain::KeepPrefix::system);
    EXPECT_EQ(engine.asked.sensitivity, domain::Sensitivity::secret);
    EXPECT_EQ(response->prefix, "class_forbids");
}

TEST_F(TargetTest, ADispatchForAnotherTargetIsAFault) {
    const auto local = make_local_target(spec(), engine);
    const auto response = run_with(*local, spec(), true, domain::Operation::chat);
    ASSERT_FALSE(response);
    EXPECT_EQ(response.error().code(), ErrorCode::internal);
    EXPECT_EQ(sink.count, 0);
}

TEST_F(TargetTest, ARemoteStreamIsPassedOnPieceByPiece) {
    stream_of("ciao");
    const auto remote = make_remote_target(spec(), connector, "sk-test");
    const auto response = run(*remote);
    ASSERT_TRUE(response) << response.error().message();
    EXPECT_EQ(sink.text, "ciao");
    EXPECT_EQ(response->model, "big-v2");
    EXPECT_EQ(report.bytes_sent, connector.sent.body.size());
    EXPECT_GT(report.bytes_received, 0U);
    EXPECT_TRUE(report.body_accepted);
    EXPECT_EQ(net::header(connector.sent.headers, "authorization"), "Bearer sk-test");
    EXPECT_EQ(connector.sent.body.find("sk-test"), std::string::npos);
    EXPECT_NE(connector.sent.body.find("\"stream\":true"), std::string::npos);
    EXPECT_EQ(remote->queue_depth(), 0U);
}

TEST_F(TargetTest, AWholeAnswerIsReadWholeEvenWhereAStreamWasAsked) {
    connector.reply.headers = {{"content-type", "application/json"}};
    connector.reply.pieces = {
        R"({"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"tutto"},)",
        R"("finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":2}})"};
    const auto remote = make_remote_target(spec(), connector, "");
    const auto response = run(*remote);
    ASSERT_TRUE(response) << response.error().message();
    EXPECT_EQ(sink.text, "tutto");
    EXPECT_EQ(response->usage.prompt_tokens, 5U);
    EXPECT_EQ(net::header(connector.sent.headers, "authorization"), "");
}

// Case 4.
TEST_F(TargetTest, AnIncompleteAnswerIsAFailure) {
    stream_of("metà", false);
    const auto remote = make_remote_target(spec(), connector, "");
    EXPECT_EQ(run(*remote).error().code(), ErrorCode::upstream_failed);
    EXPECT_EQ(sink.text, "metà");
    EXPECT_TRUE(report.body_accepted);
    connector.reply.error = Error(ErrorCode::upstream_failed, "reset");
    EXPECT_EQ(run(*remote).error().code(), ErrorCode::upstream_failed);
    connector.reply.error.reset();
    connector.reply.pieces = {"data: {broken\n\n"};
    EXPECT_EQ(run(*remote).error().code(), ErrorCode::upstream_failed);
}

TEST_F(TargetTest, AStatusIsMappedAndTellsWhetherTheWorkMayBeDone) {
    const auto remote = make_remote_target(spec(), connector, "");
    const auto status = [&](int code) {
        connector.reply = {code, {{"retry-after", "7"}}, {R"({"error":{"message":"no"}})"}, {}};
        report = {};
        return run(*remote).error();
    };
    EXPECT_EQ(status(429).code(), ErrorCode::rate_limited);
    EXPECT_EQ(status(429).retry_after(), std::chrono::seconds(7));
    EXPECT_FALSE(report.body_accepted);
    EXPECT_EQ(status(503).code(), ErrorCode::unavailable);
    EXPECT_EQ(status(400).code(), ErrorCode::invalid_request);
    EXPECT_NE(status(302).code(), ErrorCode::invalid_request);
    EXPECT_FALSE(report.body_accepted);
    [[maybe_unused]] const Error gateway = status(504);
    EXPECT_TRUE(report.body_accepted);
}

// Case 25: an upstream that quotes the key.
TEST_F(TargetTest, AnErrorNeverQuotesTheKey) {
    connector.reply = {401, {}, {R"({"error":{"message":"bad key sk-secret-key"}})"}, {}};
    const auto remote = make_remote_target(spec(), connector, "sk-secret-key");
    const Error error = run(*remote).error();
    EXPECT_EQ((error.message() + error.message_italian() + error.reason()).find("sk-secret"),
              std::string::npos);
}

TEST_F(TargetTest, AReaderWhoLeavesEndsTheExchange) {
    stream_of("ciao");
    sink.gone = true;
    const auto remote = make_remote_target(spec(), connector, "");
    EXPECT_EQ(run(*remote).error().code(), ErrorCode::cancelled);
    EXPECT_EQ(sink.count, 1);
}

TEST_F(TargetTest, AProbeAsksForTheModelsWithoutContent) {
    const policy::PolicyEngine policy({});
    const auto permit = policy.clear_artifact({"probe", {}});
    const auto probe = [&](Target& target) {
        std::optional<Result<void>> result;
        boost::asio::io_context io;
        spawn(io.get_executor(), [&]() -> Task<void> { result = co_await target.probe(*permit); });
        io.run();
        return *std::move(result);
    };
    const auto remote = make_remote_target(spec(), connector, "sk-test");
    EXPECT_TRUE(probe(*remote));
    EXPECT_EQ(connector.sent.method, "GET");
    EXPECT_EQ(connector.sent.path, "/models");
    EXPECT_TRUE(connector.sent.body.empty());
    connector.reply.status = 401;
    EXPECT_FALSE(probe(*remote));
    connector.reply.status = 404;
    EXPECT_TRUE(probe(*remote));
    EXPECT_TRUE(probe(*make_local_target(spec(), engine)));
}

}  // namespace
}  // namespace molly::targets
