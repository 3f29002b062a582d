#pragma once
// Proof of where content may go, and leave for one attempt. Pure values; safe from any thread.
// Only PolicyEngine makes a Permit, and everything that opens a socket asks for one.
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "base/result.h"
#include "domain/target.h"
#include "domain/trace.h"

namespace molly::policy {

/// Why the redacted form of a request may not go to T3 either.
enum class T3Closed : std::uint8_t {
    open,       ///< it may
    no_permit,  ///< no rule permits it
    private_,   ///< private, and no rule lets its redacted form count as standard
    secret,     ///< secret content never goes there in any form
    kept,       ///< a rule or the key keeps it from T3
    detection,  ///< a detector is absent or did not look at everything
    modality,   ///< an image, audio or file, which no detector reads
    token,      ///< an identifier in a name or id, which a placeholder would break
};
/// `detection_incomplete`, for metrics and records; empty for open.
std::string_view to_string(T3Closed closed) noexcept;

/// Proof of where one piece of content may be processed. It can be narrowed, never widened.
class Permit final {
public:
    Permit(const Permit&
               other);  // hand-written: a trivially copyable permit could be forged with bit_cast
    Permit(Permit&& other) noexcept;
    Permit& operator=(const Permit&) = delete;
    Permit& operator=(Permit&&) = delete;
    ~Permit();

    /// Whether content may go to `target` as it stands. Errors: denied, naming the rule and what
    /// forbids it.
    Result<void> check(const domain::TargetSpec& target) const;
    /// Whether it may go there in the form that the tier asks for: to T3 redacted, else as it
    /// stands. Errors: as check.
    Result<void> check_form(const domain::TargetSpec& target) const;
    /// Content as it stands; the redacted form may reach more.
    bool allows(domain::Tier tier) const noexcept { return tiers_.contains(tier); }
    /// The tiers that it reaches in the form that each asks for.
    domain::TierSet tiers() const noexcept;
    const domain::Residency& residency() const noexcept { return residency_; }
    /// The rule that decided.
    const std::string& rule() const noexcept { return rule_; }
    /// Whether its redacted form may go to T3, or why not.
    T3Closed t3() const noexcept { return openings_.empty() ? closed_ : T3Closed::open; }

    /// What both permits allow.
    Permit narrowed(const Permit& other) const;

private:
    friend class PolicyEngine;
    friend class Redacted;
    /// A rule about the targets in some places only.
    struct Restriction {
        domain::Residency places;
        domain::TierSet tiers;
        std::string rule;
    };
    Permit(domain::TierSet tiers, domain::Residency residency, std::string rule);
    /// The permit of the redacted form at one target: the only way to T3.
    Permit(const Permit& whole, const domain::TargetSpec& target);
    Result<void> check_places(const domain::TargetSpec& target) const;
    Error not_permitted(const domain::TargetSpec& target) const;

    domain::TierSet tiers_;
    domain::Residency residency_;
    std::string rule_;
    std::vector<Restriction> restrictions_;
    std::vector<domain::Residency> openings_;  // where T3 may get the redacted form
    T3Closed closed_ = T3Closed::no_permit;
    std::string only_target_;  // id; empty: any
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

/// Leave for one attempt at one target. Move-only: the target consumes it. One for a T3 target
/// becomes bytes through `Redacted` alone: its permit passes no socket.
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
    const domain::Label& label() const noexcept { return cleared_->annotated().label; }

private:
    friend class Redactor;
    Dispatch(std::shared_ptr<const domain::TargetSpec> target, std::string adapter,
             std::shared_ptr<const ClearedRequest> cleared);

    std::shared_ptr<const domain::TargetSpec> target_;
    std::string adapter_;
    std::shared_ptr<const ClearedRequest> cleared_;
};

static_assert(!std::is_default_constructible_v<Permit>);
static_assert(!std::is_constructible_v<Permit, domain::TierSet, domain::Residency, std::string>);
static_assert(!std::is_constructible_v<Permit, const Permit&, const domain::TargetSpec&>);
static_assert(!std::is_trivially_copyable_v<Permit>, "std::bit_cast could forge one");
static_assert(!std::is_constructible_v<ClearedRequest, domain::AnnotatedRequest, Permit>);
static_assert(!std::is_copy_constructible_v<ClearedRequest>);
static_assert(!std::is_copy_constructible_v<Dispatch>);

}  // namespace molly::policy
