#include "policy/permit.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace molly::policy {
namespace {

using domain::Tier;
using domain::TierSet;

struct Reason {
    std::string_view token;
    std::string_view english;
    std::string_view italian;
};

// Indexed by T3Closed.
constexpr std::array<Reason, 8> reasons = {{
    {"", "", ""},
    {"t3_not_permitted", " and no rule permits it", " e nessuna regola lo permette"},
    {"private_not_permitted", " and no rule lets private content count as standard once redacted",
     " e nessuna regola fa contare come standard il contenuto privato oscurato"},
    {"secret", ", where secret content never goes", ", dove il contenuto segreto non va mai"},
    {"kept_from_t3", " and a rule or the key keeps it from there",
     " e una regola o la chiave lo tiene lontano da lì"},
    {"detection_incomplete",
     " and the detectors did not look at everything (`molly doctor` names what is missing)",
     " e i rivelatori non hanno guardato tutto (`molly doctor` dice che cosa manca)"},
    {"modality_without_detector",
     " and it holds an image, audio or a file, which no detector reads",
     " e contiene un'immagine, un audio o un file, che nessun rivelatore legge"},
    {"token_not_redactable",
     " and an identifier stands in a name or id of it, where no placeholder can",
     " e un identificativo sta in un nome o id, dove un segnaposto non può stare"},
}};

const Reason& reason_of(T3Closed closed) noexcept {
    return reasons[static_cast<std::size_t>(closed)];
}

std::string places_of(const domain::TargetSpec& target, std::string_view nothing) {
    return target.jurisdiction.empty() ? std::string(nothing) : target.jurisdiction;
}

}  // namespace

std::string_view to_string(T3Closed closed) noexcept {
    return reason_of(closed).token;
}

Permit::Permit(TierSet tiers, domain::Residency residency, std::string rule)
    : tiers_(tiers), residency_(std::move(residency)), rule_(std::move(rule)) {}
Permit::Permit(const Permit& whole, const domain::TargetSpec& target)
    : tiers_({Tier::t3}),
      residency_(whole.residency_),
      rule_(whole.rule_),
      restrictions_(whole.restrictions_),
      only_target_(target.id) {}
Permit::Permit(const Permit& other) = default;
Permit::Permit(Permit&& other) noexcept = default;
Permit::~Permit() = default;

TierSet Permit::tiers() const noexcept {
    return openings_.empty() ? tiers_ : tiers_ | TierSet{Tier::t3};
}

Error Permit::not_permitted(const domain::TargetSpec& target) const {
    const T3Closed closed = openings_.empty() ? closed_ : T3Closed::no_permit;
    const bool outside = target.tier == Tier::t3 && only_target_.empty();
    return Error(ErrorCode::denied,
                 fmt::format("rule {} permits {}; target {} is {}{}", rule_, to_string(tiers()),
                             target.id, to_string(target.tier),
                             outside ? reason_of(closed).english : ""))
        .reason(outside ? std::string(reason_of(closed).token) : "tier_not_permitted")
        .italian(fmt::format("la regola {} permette {}; la destinazione {} è {}{}", rule_,
                             to_string(tiers()), target.id, to_string(target.tier),
                             outside ? reason_of(closed).italian : ""));
}

Result<void> Permit::check_places(const domain::TargetSpec& target) const {
    for (const Restriction& restriction : restrictions_) {
        // Who declares no jurisdiction could be in any.
        const bool concerned =
            target.places().empty() || restriction.places.allows(target.places());
        if (!concerned || restriction.tiers.contains(target.tier)) continue;
        return fail(Error(ErrorCode::denied,
                          fmt::format("rule {} permits {} in {}; target {} is {} and declares {}",
                                      restriction.rule, to_string(restriction.tiers),
                                      to_string(restriction.places), target.id,
                                      to_string(target.tier), places_of(target, "no jurisdiction")))
                        .reason("tier_not_permitted")
                        .italian(fmt::format(
                            "la regola {} permette {} in {}; la destinazione {} è {} e dichiara {}",
                            restriction.rule, to_string(restriction.tiers),
                            to_string(restriction.places), target.id, to_string(target.tier),
                            places_of(target, "nessuna giurisdizione"))));
    }
    if (residency_.allows(target.places())) return {};
    return fail(
        Error(ErrorCode::denied,
              fmt::format("rule {} keeps this content in {}; target {} declares {}", rule_,
                          to_string(residency_), target.id, places_of(target, "no jurisdiction")))
            .reason("residency_not_permitted")
            .italian(fmt::format(
                "la regola {} tiene questo contenuto in {}; la destinazione {} dichiara {}", rule_,
                to_string(residency_), target.id, places_of(target, "nessuna giurisdizione"))));
}

Result<void> Permit::check(const domain::TargetSpec& target) const {
    const bool this_one = only_target_.empty() || only_target_ == target.id;
    if (!this_one || !tiers_.contains(target.tier)) return fail(not_permitted(target));
    return check_places(target);
}

Result<void> Permit::check_form(const domain::TargetSpec& target) const {
    if (target.tier != Tier::t3 || openings_.empty()) return check(target);
    const bool open = std::any_of(
        openings_.begin(), openings_.end(),
        [&](const domain::Residency& places) { return places.allows(target.places()); });
    if (!open) return fail(not_permitted(target));
    return check_places(target);
}

Permit Permit::narrowed(const Permit& other) const {
    Permit both(tiers_ & other.tiers_, residency_.intersect(other.residency_),
                rule_ == other.rule_ ? rule_ : rule_ + "+" + other.rule_);
    both.restrictions_ = restrictions_;
    both.restrictions_.insert(both.restrictions_.end(), other.restrictions_.begin(),
                              other.restrictions_.end());
    for (const domain::Residency& mine : openings_) {
        for (const domain::Residency& theirs : other.openings_)
            both.openings_.push_back(mine.intersect(theirs));
    }
    both.closed_ = openings_.empty() ? closed_ : other.closed_;
    // Of two permits for one target each, nothing is left where the targets differ.
    both.only_target_ = only_target_.empty() ? other.only_target_ : only_target_;
    const bool apart = !other.only_target_.empty() && both.only_target_ != other.only_target_;
    if (apart) both.tiers_ = TierSet{};
    return both;
}

ClearedRequest::ClearedRequest(domain::AnnotatedRequest annotated, Permit permit)
    : annotated_(std::move(annotated)), permit_(std::move(permit)) {}

Dispatch::Dispatch(std::shared_ptr<const domain::TargetSpec> target, std::string adapter,
                   std::shared_ptr<const ClearedRequest> cleared)
    : target_(std::move(target)), adapter_(std::move(adapter)), cleared_(std::move(cleared)) {}

Result<Dispatch> Dispatch::to(std::shared_ptr<const domain::TargetSpec> target, std::string adapter,
                              std::shared_ptr<const ClearedRequest> cleared) {
    TRY_DO(cleared->permit().check_form(*target));
    return Dispatch(std::move(target), std::move(adapter), std::move(cleared));
}

}  // namespace molly::policy
