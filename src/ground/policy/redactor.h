#pragma once
// Makes the only payload that a third party gets: the request of one dispatch with a placeholder
// for everything that was found in it. Safe from any thread.
#include <memory>
#include <string>
#include <type_traits>

#include "base/result.h"
#include "domain/request.h"
#include "domain/trace.h"
#include "policy/permit.h"
#include "policy/placeholders.h"
#include "policy/restorer.h"

namespace molly::policy {

/// The redacted form of one dispatch, for its target alone. Move-only; made by Redactor alone.
class Redacted final {
public:
    Redacted(Redacted&&) noexcept = default;
    Redacted(const Redacted&) = delete;
    Redacted& operator=(const Redacted&) = delete;
    Redacted& operator=(Redacted&&) = delete;
    ~Redacted() = default;

    const domain::TargetSpec& target() const noexcept { return *target_; }
    const std::string& adapter() const noexcept { return adapter_; }
    /// Texts with placeholders; without metadata, user, conversation and everything else about the
    /// caller.
    const domain::Request& request() const noexcept { return request_; }
    /// Passes the one target.
    const Permit& permit() const noexcept { return permit_; }
    const domain::Redactions& redactions() const noexcept { return redactions_; }
    /// For its answer.
    Restorer restorer() const;

private:
    friend class Redactor;
    Redacted(std::shared_ptr<const domain::TargetSpec> target, std::string adapter,
             domain::Request request, const Permit& whole,
             std::shared_ptr<const Placeholders> placeholders, domain::Redactions redactions);

    std::shared_ptr<const domain::TargetSpec> target_;
    std::string adapter_;
    domain::Request request_;
    Permit permit_;
    std::shared_ptr<const Placeholders> placeholders_;
    domain::Redactions redactions_;
};

class Redactor {
public:
    /// Whether the redacted form of a request can be made: `open`, `detection`, `modality` or
    /// `token`. Pure.
    static T3Closed obstacle(const domain::AnnotatedRequest& annotated);

    /// The payload of a dispatch to a T3 target; `map` is its conversation's. Log-probabilities are
    /// not asked for once something is replaced: their tokens would cut placeholders.
    /// Errors: denied, when there is an obstacle or the target is none of T3.
    static Result<Redacted> redact(Dispatch dispatch, PlaceholderMap& map);
};

static_assert(!std::is_default_constructible_v<Redacted>);
static_assert(!std::is_copy_constructible_v<Redacted>);
static_assert(!std::is_constructible_v<Redacted, Dispatch>);
static_assert(!std::is_constructible_v<Redacted, domain::Request>);
static_assert(!std::is_constructible_v<Redacted, std::shared_ptr<const domain::TargetSpec>,
                                       std::string, domain::Request, const Permit&,
                                       std::shared_ptr<const Placeholders>, domain::Redactions>);

}  // namespace molly::policy
