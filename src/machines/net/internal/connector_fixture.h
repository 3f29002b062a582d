#pragma once
// What the tests of the connector share.
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/coroutine.h"
#include "net/connector.h"
#include "net/internal/raw_peer.h"
#include "net/server.h"
#include "policy/policy_engine.h"

namespace molly::net::internal {

/// Keeps what it is given.
class KeepingSink final : public ReplySink {
public:
    Task<Result<void>> head(int got, const Headers& headers) override {
        status = got;
        fields = headers;
        co_return Result<void>();
    }
    Task<Result<void>> piece(std::string_view bytes) override {
        longest = std::max(longest, bytes.size());
        total += bytes.size();
        if (keep) body += bytes;
        if (refuse_piece) co_return fail(ErrorCode::exhausted, "no more");
        co_return Result<void>();
    }
    int status = 0;
    Headers fields;
    std::string body;
    std::size_t total = 0;
    std::size_t longest = 0;
    bool keep = true;
    bool refuse_piece = false;
};

/// How one exchange went.
struct Went {
    Result<void> result;
    KeepingSink sink;
    Wire wire;
};

class ConnectorTest : public ::testing::Test {
protected:
    static policy::Permit permit(domain::Sensitivity sensitivity = domain::Sensitivity::public_) {
        const policy::PolicyEngine engine{policy::Options()};
        policy::ArtifactLabel label;
        label.purpose = "test";
        label.label.sensitivity = sensitivity;
        auto made = engine.clear_artifact(label);
        EXPECT_TRUE(made);
        return *std::move(made);
    }
    static domain::TargetSpec at(std::uint16_t port, domain::Tier tier = domain::Tier::t1) {
        domain::TargetSpec target;
        target.id = "peer";
        target.tier = tier;
        target.endpoint.host = "127.0.0.1";
        target.endpoint.port = port;
        target.endpoint.path = "/v1";
        target.connect_timeout = std::chrono::milliseconds(500);
        target.idle_timeout = std::chrono::milliseconds(500);
        return target;
    }
    static OutboundRequest post(std::string body = "{}") {
        OutboundRequest request;
        request.path = "/chat";
        request.headers.emplace_back("content-type", "application/json");
        request.body = std::move(body);
        return request;
    }

    void run(const domain::TargetSpec& target, OutboundRequest request, Went& went,
             const policy::Permit& leave) {
        threads_.run([&]() -> Task<void> {
            went.result = co_await connector_->exchange(leave, target, std::move(request),
                                                        went.sink, went.wire);
        });
    }
    Went run(const domain::TargetSpec& target, OutboundRequest request = post()) {
        Went went;
        run(target, std::move(request), went, permit());
        return went;
    }

    IoThreads threads_{1};
    std::unique_ptr<Connector> connector_ = make_connector();
};

}  // namespace molly::net::internal
