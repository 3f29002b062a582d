#pragma once
// One server that speaks a dialect: a request out, Deltas back. What may be sent there is the
// business of the targets that use it.
#include <atomic>
#include <memory>
#include <string>

#include "targets/target.h"

namespace molly::targets::internal {

class Upstream {
public:
    Upstream(std::shared_ptr<const domain::TargetSpec> spec, net::Connector& connector,
             std::string key)
        : spec_(std::move(spec)), connector_(connector), key_(std::move(key)) {}

    /// `permit` is that of the request; `more` headers go with it. Errors: as Target::run.
    Task<Result<domain::Response>> ask(const domain::Request& request, const policy::Permit& permit,
                                       DeltaSink& sink, Report& report, net::Headers more = {});
    Task<Result<void>> probe(const policy::Permit& permit);
    std::uint32_t running() const noexcept { return running_; }

    /// The only place where the key goes; no error and no log has it.
    void add_key(net::Headers& headers) const;
    const domain::TargetSpec& spec() const noexcept { return *spec_; }
    net::Connector& connector() noexcept { return connector_; }

private:
    Result<net::OutboundRequest> encode(const domain::Request& request) const;

    std::shared_ptr<const domain::TargetSpec> spec_;
    net::Connector& connector_;
    std::string key_;
    std::atomic<std::uint32_t> running_ = 0;
};

}  // namespace molly::targets::internal
