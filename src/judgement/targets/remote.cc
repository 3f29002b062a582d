#include <utility>

#include "base/coroutine.h"
#include "targets/external.h"
#include "targets/internal/cooperation.h"
#include "targets/internal/upstream.h"

namespace molly::targets {
namespace {

/// A server of the owner's, or of the owner's network: content as it stands.
class RemoteTarget final : public Target {
public:
    RemoteTarget(const std::shared_ptr<const domain::TargetSpec>& spec, net::Connector& connector,
                 std::string key, Drafter drafter)
        : Target(spec), upstream_(spec, connector, std::move(key)) {
        if (drafter.engine != nullptr && spec->drafts != domain::Drafts::off)
            cooperation_ = std::make_unique<internal::Cooperation>(upstream_, std::move(drafter));
    }

    std::uint32_t queue_depth() const noexcept override { return upstream_.running(); }
    Task<Result<void>> probe(const policy::Permit& permit) override {
        return upstream_.probe(permit);
    }

private:
    Task<Result<domain::Response>> answer(policy::Dispatch dispatch, DeltaSink& sink,
                                          Report& report) override {
        Result<domain::Response> answered = fail(ErrorCode::internal, "nobody was asked");
        if (cooperation_) {
            answered = co_await cooperation_->answer(dispatch, sink, report);
        } else {
            answered = co_await upstream_.ask(dispatch.request(), dispatch.permit(), sink, report);
        }
        CO_TRY(domain::Response response, std::move(answered));
        response.adapter = dispatch.adapter();
        co_return response;
    }

    internal::Upstream upstream_;
    std::unique_ptr<internal::Cooperation> cooperation_;  // null: it answers alone
};

}  // namespace

std::unique_ptr<Target> make_remote_target(std::shared_ptr<const domain::TargetSpec> spec,
                                           net::Connector& connector, std::string key,
                                           Drafter drafter) {
    if (spec->tier == domain::Tier::t3)
        return make_external_target(std::move(spec), connector, std::move(key));
    return std::make_unique<RemoteTarget>(spec, connector, std::move(key), std::move(drafter));
}

}  // namespace molly::targets
