#pragma once
// What begins at a place of a text? Each answers for one family of identifiers. Pure.
#include <optional>
#include <string_view>

#include "annotate/internal/scan.h"

namespace molly::annotate {

/// What begins there: a finding, or plain text up to `end` that is none and may be passed over.
struct Recognised {
    std::optional<Finding> finding;
    std::size_t end = 0;  ///< 0: nothing begins there
};

inline Recognised recognised(const Finding& finding) noexcept {
    return {finding, finding.end};
}

// At the beginning of a word of ASCII letters and digits:
Recognised iban_at(std::string_view text, std::size_t at) noexcept;
Recognised card_at(std::string_view text, std::size_t at) noexcept;
Recognised codice_fiscale_at(std::string_view text, std::size_t at) noexcept;
/// Plates, identity cards, passports, driving licences.
Recognised document_at(std::string_view text, std::size_t at) noexcept;
/// Health card, SSN, partita IVA, passport of digits.
Recognised number_at(std::string_view text, std::size_t at) noexcept;
Recognised secret_at(std::string_view text, std::size_t at) noexcept;
Recognised date_at(std::string_view text, std::size_t at) noexcept;
Recognised network_address_at(std::string_view text, std::size_t at) noexcept;

/// At a digit, `+` or `(`.
Recognised phone_at(std::string_view text, std::size_t at) noexcept;

/// Around the `@` at `at`.
Recognised email_around(std::string_view text, std::size_t at) noexcept;
/// After the `:` of `://` at `at`: user and password.
Recognised url_credentials_at(std::string_view text, std::size_t at) noexcept;
/// After the `:` or `=` at `at`, when what stands before names a secret.
Recognised assignment_at(std::string_view text, std::size_t at) noexcept;
/// At the first hyphen of `-----BEGIN`.
Recognised private_key_at(std::string_view text, std::size_t at) noexcept;

}  // namespace molly::annotate
