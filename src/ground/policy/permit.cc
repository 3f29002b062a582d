#include "policy/permit.h"

#include <utility>

#include <fmt/format.h>

namespace molly::policy {

using domain::Tier;

Permit::Permit(domain::TierSet tiers, domain::Residency residency, std::string rule)
    : tiers_(tiers), residency_(std::move(residency)), rule_(std::move(rule)) {}
Permit::Permit(const Permit& other)
    : tiers_(other.tiers_), residency_(other.residency_), rule_(other.rule_) {}
Permit::Permit(Permit&& other) noexcept
    : tiers_(other.tiers_),
      residency_(std::move(other.residency_)),
      rule_(std::move(other.rule_)) {}
Permit::~Permit() {
}  // NOLINT(modernize-use-equals-default): keeps the class from being trivially copyable

Result<void> Permit::check(const domain::TargetSpec& target) const {
    if (!tiers_.contains(target.tier)) {
        const bool outside = target.tier == Tier::t3;
        return fail(
            Error(ErrorCode::denied,
                  fmt::format("rule {} permits {}; target {} is {}{}", rule_, to_string(tiers_),
                              target.id, to_string(target.tier),
                              outside ? " and no redactor is loaded" : ""))
                .reason("tier_not_permitted")
                .italian(fmt::format("la regola {} permette {}; la destinazione {} è {}{}", rule_,
                                     to_string(tiers_), target.id, to_string(target.tier),
                                     outside ? " e nessun redattore è caricato" : "")));
    }
    if (!residency_.allows(target.places())) {
        return fail(
            Error(
                ErrorCode::denied,
                fmt::format("rule {} keeps this content in {}; target {} declares {}", rule_,
                            to_string(residency_), target.id,
                            target.jurisdiction.empty() ? "no jurisdiction" : target.jurisdiction))
                .reason("residency_not_permitted")
                .italian(fmt::format(
                    "la regola {} tiene questo contenuto in {}; la destinazione {} dichiara {}",
                    rule_, to_string(residency_), target.id,
                    target.jurisdiction.empty() ? "nessuna giurisdizione" : target.jurisdiction)));
    }
    return {};
}

Permit Permit::narrowed(const Permit& other) const {
    return {tiers_ & other.tiers_, residency_.intersect(other.residency_),
            rule_ == other.rule_ ? rule_ : rule_ + "+" + other.rule_};
}

ClearedRequest::ClearedRequest(domain::AnnotatedRequest annotated, Permit permit)
    : annotated_(std::move(annotated)), permit_(std::move(permit)) {}

Dispatch::Dispatch(std::shared_ptr<const domain::TargetSpec> target, std::string adapter,
                   std::shared_ptr<const ClearedRequest> cleared)
    : target_(std::move(target)), adapter_(std::move(adapter)), cleared_(std::move(cleared)) {}

Result<Dispatch> Dispatch::to(std::shared_ptr<const domain::TargetSpec> target, std::string adapter,
                              std::shared_ptr<const ClearedRequest> cleared) {
    TRY_DO(cleared->permit().check(*target));
    return Dispatch(std::move(target), std::move(adapter), std::move(cleared));
}

}  // namespace molly::policy
