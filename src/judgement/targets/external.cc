#include "targets/external.h"

#include <algorithm>
#include <utility>

#include "base/coroutine.h"
#include "targets/internal/upstream.h"

namespace molly::targets {
namespace {

bool says_nothing(const domain::Delta& delta) noexcept {
    return delta.text.empty() && delta.reasoning.empty() && delta.tool_calls.empty() &&
           delta.logprobs.empty() && !delta.finish && !delta.usage;
}

bool is_empty(const domain::ToolCallDelta& call) noexcept {
    return call.id.empty() && call.name.empty() && call.arguments.empty();
}

/// Restores each Delta; one that is withheld whole is not passed on.
class RestoringSink final : public DeltaSink {
public:
    RestoringSink(DeltaSink& next, policy::Restorer restorer)
        : next_(next), restorer_(std::move(restorer)) {}

    Task<Result<void>> write(const domain::Delta& delta) override {
        domain::Delta restored = restorer_.restore(delta);
        return pass(std::move(restored));
    }
    /// After the last Delta.
    Task<Result<void>> finish() {
        domain::Delta rest = restorer_.end();
        return pass(std::move(rest));
    }

private:
    Task<Result<void>> pass(domain::Delta delta) {
        std::erase_if(delta.tool_calls, is_empty);
        if (says_nothing(delta)) co_return Result<void>();
        co_return co_await next_.write(delta);
    }

    DeltaSink& next_;
    policy::Restorer restorer_;
};

class ExternalTarget final : public Target {
public:
    ExternalTarget(const std::shared_ptr<const domain::TargetSpec>& spec, net::Connector& connector,
                   std::string key)
        : Target(spec), client_(spec, connector, std::move(key)) {}

    std::uint32_t queue_depth() const noexcept override { return client_.running(); }
    Task<Result<void>> probe(const policy::Permit& permit) override {
        return client_.probe(permit);
    }

private:
    Task<Result<domain::Response>> answer_redacted(policy::Redacted payload, DeltaSink& sink,
                                                   Report& report) override {
        CO_TRY(domain::Response response, co_await client_.ask(payload, sink, report));
        response.adapter = payload.adapter();
        co_return response;
    }

    ExternalClient client_;
};

}  // namespace

ExternalClient::ExternalClient(const std::shared_ptr<const domain::TargetSpec>& spec,
                               net::Connector& connector, std::string key)
    : upstream_(std::make_unique<internal::Upstream>(spec, connector, std::move(key))) {}

ExternalClient::~ExternalClient() = default;

Task<Result<domain::Response>> ExternalClient::ask(const policy::Redacted& payload, DeltaSink& sink,
                                                   Report& report) {
    RestoringSink restoring(sink, payload.restorer());
    CO_TRY(domain::Response response,
           co_await upstream_->ask(payload.request(), payload.permit(), restoring, report));
    CO_TRY_DO(co_await restoring.finish());
    co_return response;
}

Task<Result<void>> ExternalClient::probe(const policy::Permit& permit) {
    return upstream_->probe(permit);
}

std::uint32_t ExternalClient::running() const noexcept {
    return upstream_->running();
}

std::unique_ptr<Target> make_external_target(std::shared_ptr<const domain::TargetSpec> spec,
                                             net::Connector& connector, std::string key) {
    return std::make_unique<ExternalTarget>(spec, connector, std::move(key));
}

}  // namespace molly::targets
