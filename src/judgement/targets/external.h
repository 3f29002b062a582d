#pragma once
// Third parties. What goes there is a redacted payload, nothing else; what comes back is restored
// on its way.
#include <memory>
#include <string>

#include "policy/redactor.h"
#include "targets/target.h"

namespace molly::targets {

namespace internal {
class Upstream;
}

/// The client of one third party. It takes no request and no dispatch.
class ExternalClient {
public:
    ExternalClient(const std::shared_ptr<const domain::TargetSpec>& spec, net::Connector& connector,
                   std::string key);
    ExternalClient(const ExternalClient&) = delete;
    ExternalClient& operator=(const ExternalClient&) = delete;
    ExternalClient(ExternalClient&&) = delete;
    ExternalClient& operator=(ExternalClient&&) = delete;
    ~ExternalClient();

    /// Deltas go to `sink` with the values in place of the placeholders. Errors: as Target::run.
    Task<Result<domain::Response>> ask(const policy::Redacted& payload, DeltaSink& sink,
                                       Report& report);
    Task<Result<void>> probe(const policy::Permit& permit);
    std::uint32_t running() const noexcept;

private:
    std::unique_ptr<internal::Upstream> upstream_;
};

/// A T3 target of the OpenAI, Anthropic or Ollama dialect.
std::unique_ptr<Target> make_external_target(std::shared_ptr<const domain::TargetSpec> spec,
                                             net::Connector& connector, std::string key);

}  // namespace molly::targets
