#pragma once
// What detectors find in text: kinds and places, never the text itself. Pure values.
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

namespace molly::domain {

/// What a span of text identifies (SPEC section 2).
enum class FindingKind : std::uint8_t {
    email,
    phone,
    iban,
    card,            ///< payment card
    codice_fiscale,  ///< Italian tax code of a person
    partita_iva,     ///< Italian VAT number
    plate,           ///< Italian vehicle plate
    id_card,         ///< Italian identity card
    passport,
    driving_licence,
    health_card,  ///< Italian (TEAM) health-card number
    ssn,          ///< US social security number
    ip_address,   ///< IPv4 or IPv6
    mac_address,
    url_credentials,  ///< user and password inside a URL
    birth_date,
    address,   ///< postal address: street, city with it, postal code
    location,  ///< a place named on its own
    person,
    organisation,
    api_key,  ///< a provider's key or token, password in an assignment
    jwt,
    private_key,  ///< PEM
    declared,     ///< a phrase or pattern of the user's own rules
};
inline constexpr std::size_t finding_kinds = 24;

/// The kind's name in receipts, policy files and placeholders: `codice_fiscale`.
std::string_view to_string(FindingKind kind) noexcept;
std::optional<FindingKind> finding_kind_from(std::string_view text) noexcept;

/// Whether the kind's check digits hold.
enum class Checksum : std::uint8_t {
    none,  ///< the kind has no check digits
    valid,
    invalid,  ///< right shape, wrong check digits: the policy says what that means
};

/// One span, in bytes of the text that was searched; begin < end, both on code-point boundaries.
struct Finding {
    FindingKind kind = FindingKind::declared;
    Checksum checksum = Checksum::none;
    std::uint32_t begin = 0;
    std::uint32_t end = 0;

    bool operator==(const Finding&) const = default;
};

/// How many spans of each kind a redactor replaced; kinds and counts, never what they were.
using Redactions = std::map<FindingKind, std::uint32_t>;

}  // namespace molly::domain
