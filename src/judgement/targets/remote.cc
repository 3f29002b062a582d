#include <utility>

#include "base/coroutine.h"
#include "targets/external.h"
#include "targets/internal/upstream.h"

namespace molly::targets {
namespace {

/// A server of the owner's, or of the owner's network: content as it stands.
class RemoteTarget final : public Target {
public:
    RemoteTarget(const std::shared_ptr<const domain::TargetSpec>& spec, net::Connector& connector,
                 std::string key)
        : Target(spec), upstream_(spec, connector, std::move(key)) {}

    std::uint32_t queue_depth() const noexcept override { return upstream_.running(); }
    Task<Result<void>> probe(const policy::Permit& permit) override {
        return upstream_.probe(permit);
    }

private:
    Task<Result<domain::Response>> answer(policy::Dispatch dispatch, DeltaSink& sink,
                                          Report& report) override {
        CO_TRY(domain::Response response,
               co_await upstream_.ask(dispatch.request(), dispatch.permit(), sink, report));
        response.adapter = dispatch.adapter();
        co_return response;
    }

    internal::Upstream upstream_;
};

}  // namespace

std::unique_ptr<Target> make_remote_target(std::shared_ptr<const domain::TargetSpec> spec,
                                           net::Connector& connector, std::string key) {
    if (spec->tier == domain::Tier::t3)
        return make_external_target(std::move(spec), connector, std::move(key));
    return std::make_unique<RemoteTarget>(spec, connector, std::move(key));
}

}  // namespace molly::targets
