#pragma once
// Proof of where content may go, and leave for one attempt. Pure values; safe from any thread.
// Only PolicyEngine makes a Permit, and everything that opens a socket asks for one.
#include <memory>
#include <string>
#include <type_traits>

#include "base/result.h"
#include "domain/target.h"
#include "domain/trace.h"

namespace molly::policy {

/// Proof of where one piece of content may be processed. It can be narrowed, never widened.
class Permit final {
public:
    Permit(const Permit&
               other);  // hand-written: a trivially copyable permit could be forged with bit_cast
    Permit(Permit&& other) noexcept;
    Permit& operator=(const Permit&) = delete;
    Permit& operator=(Permit&&) = delete;
    ~Permit();

    /// Whether content may go to `target`. Errors: denied, naming the rule and what forbids it.
    Result<void> check(const domain::TargetSpec& target) const;
    bool allows(domain::Tier tier) const noexcept { return tiers_.contains(tier); }
    domain::TierSet tiers() const noexcept { return tiers_; }
    const domain::Residency& residency() const noexcept { return residency_; }
    /// The rule that decided.
    const std::string& rule() const noexcept { return rule_; }

    /// What both permits allow.
    Permit narrowed(const Permit& other) const;

private:
    friend class PolicyEngine;
    Permit(domain::TierSet tiers, domain::Residency residency, std::string rule);

    domain::TierSet tiers_;
    domain::Residency residency_;
    std::string rule_;
};

/// A request welded to its permission. Move-only; past policy, content travels in nothing else.
class ClearedRequest final {
public:
    ClearedRequest(ClearedRequest&&) noexcept = default;
    ClearedRequest(const ClearedRequest&) = delete;
    ClearedRequest& operator=(const ClearedRequest&) = delete;
    ClearedRequest& operator=(ClearedRequest&&) = delete;
    ~ClearedRequest() = default;

    const domain::Request& request() const noexcept { return annotated_.request; }
    const domain::AnnotatedRequest& annotated() const noexcept { return annotated_; }
    const Permit& permit() const noexcept { return permit_; }

private:
    friend class PolicyEngine;
    ClearedRequest(domain::AnnotatedRequest annotated, Permit permit);

    domain::AnnotatedRequest annotated_;
    Permit permit_;
};

/// Leave for one attempt at one target. Move-only: the target consumes it.
class Dispatch final {
public:
    Dispatch(Dispatch&&) noexcept = default;
    Dispatch(const Dispatch&) = delete;
    Dispatch& operator=(const Dispatch&) = delete;
    Dispatch& operator=(Dispatch&&) = delete;
    ~Dispatch() = default;

    /// Errors: denied, when the request's permit does not cover the target.
    static Result<Dispatch> to(std::shared_ptr<const domain::TargetSpec> target,
                               std::string adapter, std::shared_ptr<const ClearedRequest> cleared);

    const domain::TargetSpec& target() const noexcept { return *target_; }
    const std::string& adapter() const noexcept { return adapter_; }
    const domain::Request& request() const noexcept { return cleared_->request(); }
    const Permit& permit() const noexcept { return cleared_->permit(); }

private:
    Dispatch(std::shared_ptr<const domain::TargetSpec> target, std::string adapter,
             std::shared_ptr<const ClearedRequest> cleared);

    std::shared_ptr<const domain::TargetSpec> target_;
    std::string adapter_;
    std::shared_ptr<const ClearedRequest> cleared_;
};

static_assert(!std::is_default_constructible_v<Permit>);
static_assert(!std::is_constructible_v<Permit, domain::TierSet, domain::Residency, std::string>);
static_assert(!std::is_trivially_copyable_v<Permit>, "std::bit_cast could forge one");
static_assert(!std::is_constructible_v<ClearedRequest, domain::AnnotatedRequest, Permit>);
static_assert(!std::is_copy_constructible_v<ClearedRequest>);
static_assert(!std::is_copy_constructible_v<Dispatch>);

}  // namespace molly::policy
