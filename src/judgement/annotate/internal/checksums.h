#pragma once
// Check digits, over compact upper-case ASCII. Pure.
#include <string_view>

namespace molly::annotate {

/// Luhn (ISO/IEC 7812-1, annex B) over digits.
bool luhn_holds(std::string_view digits) noexcept;

/// The length and structure of the country's IBAN (ISO 13616 registry), as in `4a14n` after country
/// and check digits; empty: no such country.
std::string_view iban_structure(std::string_view country) noexcept;
/// Characters in all of an IBAN of that structure.
std::size_t iban_length(std::string_view structure) noexcept;
/// Whether the part after the fourth character has that structure (n digits, a letters, c both).
bool iban_shape_holds(std::string_view iban, std::string_view structure) noexcept;
/// Mod 97 (ISO 7064) and, for Italy and San Marino, the national check letter CIN (ABI standard).
bool iban_holds(std::string_view iban) noexcept;

/// The shape of a codice fiscale of a person (D.M. 23 December 1976), digits replaced after
/// omocodia included: letters, year, month letter, day, place, check letter.
bool codice_fiscale_shape_holds(std::string_view code) noexcept;
bool codice_fiscale_holds(std::string_view code) noexcept;

/// Eleven digits of a partita IVA or of an organisation's tax code; all zeros are none.
bool partita_iva_holds(std::string_view digits) noexcept;

}  // namespace molly::annotate
