#include "targets/external.h"

#include <boost/asio/io_context.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/coroutine.h"
#include "base/json.h"
#include "domain/texts.h"
#include "policy/policy_engine.h"

namespace molly::targets {
namespace {

using domain::Delta;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string iban = "IT60X0542811101000000123456";
const std::string name = "Anna \"Nina\" Rossi";

/// Replies with what it is told, with the placeholders of the request in place of {IBAN} and
/// {NAME}.
class EchoingConnector final : public net::Connector {
public:
    Task<Result<void>> exchange(const policy::Permit& permit, const domain::TargetSpec& target,
                                net::OutboundRequest request, net::ReplySink& sink,
                                net::Wire&) override {
        CO_TRY_DO(permit.check(target));
        sent = std::move(request);
        const net::Headers headers = {
            {"content-type", stream ? "text/event-stream" : "application/json"}};
        CO_TRY_DO(co_await sink.head(200, headers));
        const std::string body = filled();
        for (std::size_t at = 0; at < body.size(); at += piece)
            CO_TRY_DO(co_await sink.piece(std::string_view(body).substr(at, piece)));
        co_return Result<void>();
    }

    std::string placeholder(const std::string& kind) const {
        const auto at = sent.body.find("[" + kind);
        return at == std::string::npos ? "none"
                                       : sent.body.substr(at, sent.body.find(']', at) + 1 - at);
    }

    std::string reply;
    bool stream = true;
    std::size_t piece = 1;
    net::OutboundRequest sent;

private:
    std::string filled() const {
        std::string body = reply;
        for (const auto& [mark, kind] :
             {std::pair("{IBAN}", "IBAN"), std::pair("{NAME}", "PERSON")}) {
            const std::string_view wanted = mark;
            for (auto at = body.find(wanted); at != std::string::npos; at = body.find(wanted))
                body.replace(at, wanted.size(), placeholder(kind));
        }
        return body;
    }
};

class Collector final : public DeltaSink {
public:
    Task<Result<void>> write(const Delta& delta) override {
        builder.add(delta);
        ++count;
        co_return Result<void>();
    }
    domain::ResponseBuilder builder;
    int count = 0;
};

domain::AnnotatedRequest annotated(domain::Request request) {
    domain::AnnotatedRequest out;
    out.label.sensitivity = domain::Sensitivity::standard;
    out.detection_complete = true;
    domain::for_each_text(request, [&](const std::string& text, domain::TextForm) {
        auto& findings = out.findings.emplace_back();
        for (const auto& [kind, value] : {std::pair(domain::FindingKind::iban, iban),
                                          std::pair(domain::FindingKind::person, name)}) {
            const auto at = static_cast<std::uint32_t>(text.find(value));
            if (text.find(value) == std::string::npos) continue;
            findings.push_back(
                {kind, domain::Checksum::none, at, at + static_cast<std::uint32_t>(value.size())});
        }
    });
    out.request = std::move(request);
    return out;
}

class ExternalTest : public ::testing::Test {
protected:
    Result<domain::Response> run(domain::Request request,
                                 domain::Dialect dialect = domain::Dialect::openai) {
        auto spec = std::make_shared<domain::TargetSpec>();
        spec->id = "cloud";
        spec->tier = domain::Tier::t3;
        spec->dialect = dialect;
        spec->model = "big";
        const auto target = make_remote_target(spec, connector, "sk-key");
        policy::Rule rule;
        rule.name = "press";
        rule.permit_t3 = true;
        auto cleared = std::make_shared<const policy::ClearedRequest>(
            *policy::PolicyEngine({.rules = {rule}}).clear(annotated(std::move(request))));
        auto dispatch = policy::Dispatch::to(spec, "", cleared);
        EXPECT_TRUE(dispatch);
        std::optional<Result<domain::Response>> result;
        boost::asio::io_context io;
        spawn(io.get_executor(), [&]() -> Task<void> {
            auto payload = policy::Redactor::redact(*std::move(dispatch), map);
            EXPECT_TRUE(payload);
            Report report;
            result = co_await target->run(*std::move(payload), collector, report);
        });
        io.run();
        return *std::move(result);
    }
    static domain::Request asking(const std::string& text, bool stream = true) {
        domain::Request request;
        request.id = "r1";
        request.stream = stream;
        request.messages.push_back(domain::text_message(domain::Role::user, text));
        return request;
    }
    void expect_nothing_left() const {
        EXPECT_THAT(connector.sent.body, Not(HasSubstr(iban)));
        EXPECT_THAT(connector.sent.body, Not(HasSubstr("Nina")));
    }

    EchoingConnector connector;
    Collector collector;
    policy::PlaceholderMap map{"a seed of sixteen bytes at least"};
};

TEST_F(ExternalTest, AStreamGoesOutRedactedAndComesBackRestored) {
    connector.reply =
        R"(data: {"model":"m","choices":[{"index":0,"delta":{"content":"Hello {NAME}, "}}]})"
        "\n\n"
        R"(data: {"choices":[{"index":0,"delta":{"content":"{IBAN} is fine, [IBAN_9_zzzz] is not"}}]})"
        "\n\n"
        R"(data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]})"
        "\n\ndata: [DONE]\n\n";
    const auto response = run(asking("I am " + name + ", my account is " + iban));
    ASSERT_TRUE(response);
    expect_nothing_left();
    EXPECT_EQ(collector.builder.take().text.text(),
              "Hello " + name + ", " + iban + " is fine, [IBAN_9_zzzz] is not");
}

TEST_F(ExternalTest, APlaceholderCutBetweenChunksIsRestored) {
    // The reply is written once the placeholder is known: a first exchange shows it.
    connector.reply =
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"},"
        "\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    ASSERT_TRUE(run(asking(iban)));
    const std::string placeholder = connector.placeholder("IBAN");
    for (std::size_t cut = 1; cut < placeholder.size(); ++cut) {
        const auto chunk = [](const std::string& text) {
            std::string out = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":";
            append_json_string(out, text);
            return out + "}}]}\n\n";
        };
        connector.reply =
            chunk("so " + placeholder.substr(0, cut)) + chunk(placeholder.substr(cut) + "!") +
            "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}"
            "\n\ndata: [DONE]\n\n";
        collector.builder = {};
        ASSERT_TRUE(run(asking(iban)));
        EXPECT_EQ(collector.builder.take().text.text(), "so " + iban + "!");
    }
}

TEST_F(ExternalTest, ArgumentsOfToolCallsComeBackAsJson) {
    connector.reply =
        R"(data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"pay","arguments":"{\"to\":\"{NAME}\""}}]}}]})"
        "\n\n"
        R"(data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":",\"iban\":\"{IBAN}\"}"}}]},"finish_reason":"tool_calls"}]})"
        "\n\ndata: [DONE]\n\n";
    ASSERT_TRUE(run(asking("pay " + name + " at " + iban)));
    const domain::Response whole = collector.builder.take();
    ASSERT_EQ(whole.tool_calls.size(), 1U);
    const auto arguments = parse_json(whole.tool_calls[0].arguments.text());
    ASSERT_TRUE(arguments) << whole.tool_calls[0].arguments.text();
    EXPECT_EQ(std::string(arguments->get_object().at("to").as_string()), name);
    EXPECT_EQ(std::string(arguments->get_object().at("iban").as_string()), iban);
}

TEST_F(ExternalTest, AWholeAnswerIsRestoredToo) {
    connector.stream = false;
    connector.reply =
        R"({"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"{IBAN}"},)"
        R"("finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":1}})";
    const auto response = run(asking(iban, false));
    ASSERT_TRUE(response);
    EXPECT_EQ(response->usage.prompt_tokens, 9U);
    expect_nothing_left();
    EXPECT_EQ(collector.builder.take().text.text(), iban);
}

TEST_F(ExternalTest, AnthropicIsTheSame) {
    connector.reply =
        "event: message_start\n"
        R"(data: {"type":"message_start","message":{"id":"m","model":"c","usage":{"input_tokens":5,"output_tokens":1}}})"
        "\n\nevent: content_block_start\n"
        R"(data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}})"
        "\n\nevent: content_block_delta\n"
        R"(data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"{IBAN}"}})"
        "\n\nevent: content_block_stop\n"
        R"(data: {"type":"content_block_stop","index":0})"
        "\n\nevent: message_delta\n"
        R"(data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}})"
        "\n\nevent: message_stop\n"
        R"(data: {"type":"message_stop"})"
        "\n\n";
    domain::Request request = asking("account " + iban);
    request.user = iban;
    request.metadata["note"] = iban;
    ASSERT_TRUE(run(std::move(request), domain::Dialect::anthropic));
    expect_nothing_left();
    EXPECT_EQ(collector.builder.take().text.text(), iban);
}

TEST_F(ExternalTest, EmbeddingInputIsRedacted) {
    connector.stream = false;
    connector.reply = R"({"model":"m","data":[{"index":0,"embedding":[0.5]}],"usage":{}})";
    domain::Request request;
    request.operation = domain::Operation::embed;
    request.inputs = {domain::Content("pay " + iban)};
    const auto response = run(std::move(request));
    ASSERT_TRUE(response);
    expect_nothing_left();
    EXPECT_THAT(connector.sent.body, HasSubstr("[IBAN_1_"));
    ASSERT_EQ(response->embeddings.size(), 1U);
}

TEST_F(ExternalTest, ACompletionIsRedactedAndRestored) {
    connector.stream = false;
    connector.reply =
        R"({"model":"m","choices":[{"index":0,"text":" {IBAN}","finish_reason":"stop"}]})";
    domain::Request request;
    request.operation = domain::Operation::complete;
    request.prompt = domain::Content("My account is " + iban + ". Again: ");
    ASSERT_TRUE(run(std::move(request)));
    expect_nothing_left();
    EXPECT_EQ(collector.builder.take().text.text(), " " + iban);
}

TEST_F(ExternalTest, ADispatchAsItStandsIsRefused) {
    auto spec = std::make_shared<domain::TargetSpec>();
    spec->id = "cloud";
    spec->tier = domain::Tier::t3;
    const auto target = make_remote_target(spec, connector, "");
    policy::Rule rule;
    rule.name = "press";
    rule.permit_t3 = true;
    auto cleared = std::make_shared<const policy::ClearedRequest>(
        *policy::PolicyEngine({.rules = {rule}}).clear(annotated(asking(iban))));
    auto dispatch = policy::Dispatch::to(spec, "", cleared);
    ASSERT_TRUE(dispatch);
    std::optional<Result<domain::Response>> result;
    boost::asio::io_context io;
    spawn(io.get_executor(), [&]() -> Task<void> {
        Report report;
        result = co_await target->run(*std::move(dispatch), collector, report);
    });
    io.run();
    ASSERT_FALSE(*result);
    EXPECT_EQ(result->error().code(), ErrorCode::internal);
    EXPECT_TRUE(connector.sent.body.empty());
    // Nor would a socket have taken it.
    EXPECT_FALSE(cleared->permit().check(*spec));
}

}  // namespace
}  // namespace molly::targets
