#pragma once
// The face in front of a real pipeline, store and members; only the targets are scripted.
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/coroutine.h"
#include "gateway/gateway.h"
#include "net/server.h"
#include "seal/seal.h"
#include "targets/target.h"

namespace molly::gateway::fixture {

namespace fs = std::filesystem;

/// Says "hello world", or fails as told.
class ScriptedTarget final : public targets::Target {
public:
    using Target::Target;
    std::uint32_t queue_depth() const noexcept override { return 0; }
    Task<Result<void>> probe(const policy::Permit&) override { co_return Result<void>(); }

    std::chrono::milliseconds thinks{0};  ///< before all of it
    std::optional<Error> fails_first;     ///< before any piece
    std::optional<Error> fails_later;     ///< after the first piece
    std::vector<domain::Request> seen;

private:
    Task<Result<domain::Response>> answer(policy::Dispatch dispatch, targets::DeltaSink& sink,
                                          targets::Report&) override {
        seen.push_back(dispatch.request());
        if (thinks.count() > 0) co_await system_clock().sleep_until(system_clock().now() + thinks);
        if (fails_first) co_return fail(*fails_first);
        domain::Response response;
        response.model = "scripted-1";
        if (dispatch.request().operation == domain::Operation::embed) {
            response.embeddings.push_back({0.6F, 0.8F});
            co_return response;
        }
        domain::Delta first;
        first.text = "hello ";
        CO_TRY_DO(co_await sink.write(first));
        if (fails_later) co_return fail(*fails_later);
        domain::Delta last;
        last.text = "world";
        last.finish = domain::FinishReason::stop;
        last.usage = domain::Usage{3, 0, 2, 0, domain::Usage::Source::engine};
        CO_TRY_DO(co_await sink.write(last));
        response.usage = *last.usage;
        co_return response;
    }
};

struct Reply {
    int status = 0;
    net::Headers headers;
    std::string body;
    bool streamed = false;
    bool finished = false;

    std::string header(std::string_view name) const {
        return std::string(net::header(headers, name));
    }
};

class RecordingResponder final : public net::Responder {
public:
    Reply got;
    Task<Result<void>> reply(net::HttpReply reply) override {
        got.status = reply.status;
        got.headers = std::move(reply.headers);
        got.body = std::move(reply.body);
        got.finished = true;
        co_return Result<void>();
    }
    Task<Result<void>> begin(int status, net::Headers headers) override {
        got.status = status;
        got.headers = std::move(headers);
        got.streamed = true;
        co_return Result<void>();
    }
    Task<Result<void>> write(std::string_view piece) override {
        got.body += piece;
        co_return Result<void>();
    }
    Task<Result<void>> finish() override {
        got.finished = true;
        co_return Result<void>();
    }
    const CancellationPtr& cancellation() const noexcept override { return cancellation_; }

private:
    CancellationPtr cancellation_ = std::make_shared<Cancellation>();
};

inline std::shared_ptr<const domain::TargetSpec> spec(const char* id, domain::Tier tier) {
    auto out = std::make_shared<domain::TargetSpec>();
    out->id = id;
    out->local = tier == domain::Tier::t0;
    out->tier = tier;
    out->capabilities.embed = true;
    out->capabilities.tools = true;
    out->capabilities.json_schema = true;
    return out;
}

class GatewayTest : public ::testing::Test {
protected:
    GatewayTest() {
        store::Options options;
        options.folder = folder_;
        store_ = *store::Store::open(options);
        members_ = *members::Members::open(*store_, system_clock());
        annotator_ = *annotate::Annotator::make({});
        members::Scope admin;
        admin.member = "owner";
        admin.admin = true;
        admin.lowest_class = domain::Sensitivity::public_;
        admin.declassify = domain::Sensitivity::private_;
        admin_ = make_key(nullptr, admin);
        build({});
    }
    ~GatewayTest() override {
        store_.reset();
        fs::remove_all(folder_);
    }

    void build(Options options) {
        pipeline::Parts parts{.annotator = *annotator_,
                              .policy = policy_,
                              .store = *store_,
                              .members = *members_,
                              .health = health_,
                              .routing = routing_,
                              .targets = {&local_, &big_},
                              .metrics = metrics_,
                              .clock = system_clock(),
                              .conversation_key = "test"};
        pipeline_ = std::make_unique<pipeline::Pipeline>(std::move(parts), pipeline::Options());
        options.version = "9.9.9";
        handler_ = make_handler({.pipeline = *pipeline_,
                                 .policy = policy_,
                                 .members = *members_,
                                 .store = *store_,
                                 .routing = routing_,
                                 .metrics = metrics_,
                                 .clock = system_clock(),
                                 .engine = engine_},
                                std::move(options));
    }

    Task<void> create(const members::Key* maker, members::Scope scope) {
        auto made = co_await members_->create(maker, std::move(scope));
        made_ = *std::move(made);
    }
    members::NewKey make_key(const members::Key* maker, const members::Scope& scope) {
        threads_.run([&]() -> Task<void> { return create(maker, scope); });
        return made_;
    }

    Reply call(const char* method, const char* path, std::string body = "",
               const net::Headers& more = {}, std::string key = "admin") {
        net::HttpRequest request;
        request.method = method;
        request.path = path;
        if (const auto query = request.path.find('?'); query != std::string::npos) {
            request.query = request.path.substr(query + 1);
            request.path.resize(query);
        }
        request.headers = more;
        if (net::header(more, "host").empty()) request.headers.emplace_back("host", "127.0.0.1");
        if (key == "admin") key = admin_.text;
        if (!key.empty()) request.headers.emplace_back("authorization", "Bearer " + key);
        request.body = std::move(body);
        request.peer = "127.0.0.1";
        request.received = system_clock().now();
        RecordingResponder responder;
        threads_.run([&]() -> Task<void> { return handler_(request, responder); });
        EXPECT_TRUE(responder.got.finished) << method << ' ' << path;
        return responder.got;
    }
    Reply chat(const std::string& rest, std::string key = "admin") {
        return call("POST", "/v1/chat/completions",
                    R"({"messages":[{"role":"user","content":"hi"}],)" + rest + "}", {},
                    std::move(key));
    }

    fs::path folder_ = fs::temp_directory_path() / ("molly-gateway-" + seal::random_token(8));
    net::IoThreads threads_{1};
    Metrics metrics_;
    router::Options routing_;
    policy::PolicyEngine policy_{{}};
    router::Health health_{routing_, system_clock()};
    ScriptedTarget local_{spec("small", domain::Tier::t0)};
    ScriptedTarget big_{spec("big", domain::Tier::t0)};
    std::unique_ptr<store::Store> store_;
    std::unique_ptr<members::Members> members_;
    std::unique_ptr<annotate::Annotator> annotator_;
    std::unique_ptr<pipeline::Pipeline> pipeline_;
    engine::Engine* engine_ = nullptr;
    net::Handler handler_;
    members::NewKey made_;
    members::NewKey admin_;
};

}  // namespace molly::gateway::fixture
