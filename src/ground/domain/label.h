#pragma once
// The label that travels with the data: class, residency, origins. Pure values.
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "domain/tier.h"

namespace molly::domain {

/// How sensitive content is, lowest first; joining takes the higher one.
enum class Sensitivity : std::uint8_t { public_, standard, private_, secret };

std::string_view to_string(Sensitivity sensitivity) noexcept;
std::optional<Sensitivity> sensitivity_from(std::string_view text) noexcept;

/// The tiers that a class permits before any explicit T3 permit (SPEC section 1).
TierSet tiers_of(Sensitivity sensitivity) noexcept;

/// Where content may be: everywhere, or in the named jurisdictions and boundaries (`IT`, `EU`,
/// `home-lan`) only.
class Residency {
public:
    /// No constraint.
    Residency() = default;
    /// Only these; an empty set means nowhere.
    explicit Residency(std::set<std::string, std::less<>> places)
        : constrained_(true), places_(std::move(places)) {}

    bool constrained() const noexcept { return constrained_; }
    const std::set<std::string, std::less<>>& places() const noexcept { return places_; }
    bool nowhere() const noexcept { return constrained_ && places_.empty(); }

    /// Whether a place that lies in `where` (a jurisdiction and its boundaries) satisfies this.
    /// A place that declares nothing satisfies only the unconstrained set.
    bool allows(const std::set<std::string, std::less<>>& where) const;

    /// What both allow. `EU` and a member state intersect in the member state.
    Residency intersect(const Residency& other) const;

    bool operator==(const Residency&) const = default;

private:
    bool constrained_ = false;
    std::set<std::string, std::less<>> places_;
};

/// "everywhere", "nowhere" or "EU IT".
std::string to_string(const Residency& residency);

/// (class, residency, origins). The default is what an unlabelled request gets.
struct Label {
    Sensitivity sensitivity = Sensitivity::private_;
    Residency residency;
    std::set<std::string, std::less<>> origins;  ///< members, corpora, tools, documents

    bool operator==(const Label&) const = default;
};

/// The label of two contents together: higher class, intersected residency, all origins.
Label join(const Label& a, const Label& b);

}  // namespace molly::domain
