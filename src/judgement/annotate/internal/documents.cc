// Codes of persons, organisations, documents and vehicles: Italian, and the American SSN.
#include <algorithm>
#include <array>

#include "annotate/internal/checksums.h"
#include "annotate/internal/recognisers.h"

namespace molly::annotate {
namespace {

constexpr std::size_t context_reach = 48;
constexpr std::size_t codice_fiscale_length = 16;

/// Whether `word` has the shape: A a letter, 0 a digit, X either.
bool shaped(std::string_view word, std::string_view shape) noexcept {
    if (word.size() != shape.size()) return false;
    for (std::size_t i = 0; i < word.size(); ++i) {
        const bool holds = shape[i] == 'A'   ? is_letter(word[i])
                           : shape[i] == '0' ? is_digit(word[i])
                                             : is_alnum(word[i]);
        if (!holds) return false;
    }
    return true;
}

bool all_upper(std::string_view word) noexcept {
    return std::none_of(word.begin(), word.end(), is_lower);
}

bool has_digit(std::string_view word) noexcept {
    return std::any_of(word.begin(), word.end(), is_digit);
}

/// Plates since 1994 leave out I, O, Q and U.
bool plate_holds(std::string_view plate) noexcept {
    return shaped(plate, "AA000AA") && plate.find_first_of("IOQU") == std::string_view::npos;
}

Recognised plate_at(std::string_view text, std::size_t at) noexcept {
    constexpr std::size_t length = 7;
    const Compact all = compact(text, at, {.letters = true, .lines = false, .longest = length});
    if (!all.closes(length) || !plate_holds(all.text().substr(0, length))) return {};
    const std::size_t end = all.end(length);
    const std::string_view written = text.substr(at, end - at);
    const bool grouped = end - at > length;
    const bool named = context_before(text, at, context_reach,
                                      {"targa", "targat", "plate", "veicolo", "vehicle", "auto",
                                       "moto", "license pl", "licence pl", "registration"});
    // Of a grouped form both gaps must stand where people put them.
    if (grouped && !(all.ends_group(1) && all.ends_group(4))) return {};
    if (!named && !all_upper(written)) return {};
    return recognised(found(FindingKind::plate, at, end));
}

/// Compact forms with letters, where a word before says what they are.
Recognised named_document_at(std::string_view text, std::size_t at, std::size_t end,
                             std::string_view word) noexcept {
    const bool seven = shaped(word, "AA0000000");
    const bool passport =
        seven || shaped(word, "A00000000") || shaped(word, "A0000000") || shaped(word, "000000000");
    if (passport && context_before(text, at, context_reach, {"passport", "passaport"}))
        return recognised(found(FindingKind::passport, at, end));
    const bool identity = seven || shaped(word, "AA00000AA") || shaped(word, "0000000AA");
    if (identity && context_before(text, at, context_reach,
                                   {"carta d", "carta id", "identit", "c.i.", "ci n", "cie",
                                    "documento", "id card", "doc."}))
        return recognised(found(FindingKind::id_card, at, end));
    const bool licence = word.size() >= 6 && word.size() <= 14 && has_digit(word) &&
                         (word.size() >= 7 || is_letter(word[0]));
    if (licence && context_before(text, at, context_reach,
                                  {"patente", "driver's lic", "drivers lic", "driver lic",
                                   "driving lic", "driver\xE2\x80\x99s lic"}))
        return recognised(found(FindingKind::driving_licence, at, end));
    return {};
}

bool ssn_area_holds(std::string_view digits) noexcept {
    const std::string_view area = digits.substr(0, 3);
    return area != "000" && area != "666" && digits.substr(3, 2) != "00" &&
           digits.substr(5) != "0000";
}

Recognised ssn_at(std::string_view text, std::size_t at) noexcept {
    constexpr std::size_t length = 9;
    const Compact all = compact(text, at, {.letters = false, .lines = false, .longest = length});
    if (!all.closes(length) || all.size > length + 1) return {};
    const std::string_view digits = all.text().substr(0, length);
    const bool grouped = all.ends_group(2) && all.ends_group(4);
    const bool plain = (all.grouped & 0xFFU) == 0;
    if (!ssn_area_holds(digits) || !(grouped || plain)) return {};
    const bool hyphens = grouped && hyphen_at(text, at + 3) > 0;
    if (hyphens && digits[0] != '9')
        return recognised(found(FindingKind::ssn, at, all.end(length)));
    if (!context_before(text, at, context_reach, {"ssn", "social sec", "itin", "tax id"}))
        return {};
    return recognised(found(FindingKind::ssn, at, all.end(length)));
}

/// The number of the European health-insurance card as Italy issues it (TEAM): issuer 80380.
Recognised health_card_at(std::string_view text, std::size_t at) noexcept {
    constexpr std::size_t length = 20;
    const Compact all = compact(text, at, {.letters = false, .lines = false, .longest = length});
    if (!all.closes(length) || !all.text().starts_with("80380")) return {};
    return recognised(found(FindingKind::health_card, at, all.end(length)));
}

/// Eleven digits are everywhere: only a word or the country's letters make them a partita IVA.
Recognised partita_iva_at(std::string_view text, std::size_t at, std::size_t end) noexcept {
    const std::string_view digits = text.substr(at, end - at);
    if (digits.size() != 11 || digits.find_first_not_of('0') == std::string_view::npos) return {};
    const bool named = context_before(
        text, at, 24, {"p.iva", "p. iva", "p.i.", "piva", "partita iva", "partite iva", "vat"});
    const bool valid = partita_iva_holds(digits);
    if (named) {
        return recognised(
            found(FindingKind::partita_iva, at, end, valid ? Checksum::valid : Checksum::invalid));
    }
    const bool hinted = context_before(
        text, at, context_reach,
        {"c.f.", "cod. fisc", "cod.fisc", "codice fisc", "iva", "tax", "fattura", "invoice",
         "azienda", "societ", "ditta", "impresa", "fornitore", "s.r.l", "srl", "s.p.a", "spa"});
    if (!valid || !hinted) return {};
    return recognised(found(FindingKind::partita_iva, at, end, Checksum::valid));
}

}  // namespace

Recognised codice_fiscale_at(std::string_view text, std::size_t at) noexcept {
    const std::size_t first = word_end(text, at) - at;
    if (first < 3 || first > codice_fiscale_length) return {};
    for (std::size_t i = 0; i < std::min<std::size_t>(first, 6); ++i) {
        if (!is_letter(text[at + i])) return {};
    }
    if (first > 3 && first < 6) return {};
    if (first < codice_fiscale_length) {
        const char next = char_at(text, at + first);
        if (is_ascii(next) && next != ' ' && next != '-' && next != '\t' && next != '\n' &&
            next != '\r')
            return {};
    }
    const Compact all =
        compact(text, at, {.letters = true, .lines = true, .longest = codice_fiscale_length});
    if (!all.closes(codice_fiscale_length)) return {};
    const std::string_view code = all.text().substr(0, codice_fiscale_length);
    if (!codice_fiscale_shape_holds(code)) return {};
    const bool valid = codice_fiscale_holds(code);
    // A sentence may have the shape by chance; nothing that anybody writes has it with two digits.
    if (!valid && std::count_if(code.begin(), code.end(), is_digit) < 2) return {};
    return recognised(found(FindingKind::codice_fiscale, at, all.end(codice_fiscale_length),
                            valid ? Checksum::valid : Checksum::invalid));
}

Recognised document_at(std::string_view text, std::size_t at) noexcept {
    const std::size_t end = word_end(text, at);
    const std::string_view word = text.substr(at, end - at);
    if (word.size() == 2 && is_letter(word[0])) {
        if (const Recognised plate = plate_at(text, at); plate.finding) return plate;
        // `CA 00000 AA`, `AA 1234567`
        const Compact all = compact(text, at, {.letters = true, .lines = false, .longest = 9});
        if (!all.closes(9) || !all.ends_group(1)) return {};
        return named_document_at(text, at, all.end(9), all.text().substr(0, 9));
    }
    if (word.size() < 6 || word.size() > 14 || !has_digit(word)) return {};
    if (const Recognised plate = plate_at(text, at); plate.finding) return plate;
    if (word[0] == 'C' && all_upper(word) && shaped(word, "AA00000AA"))
        return recognised(found(FindingKind::id_card, at, end));
    // Licences since 2013: U1, seven characters without vowels, a letter.
    const bool licence = word.size() == 10 && word.starts_with("U1") && is_upper(word[9]) &&
                         all_upper(word) &&
                         word.substr(2, 7).find_first_of("AEIOQ") == std::string_view::npos;
    if (licence) return recognised(found(FindingKind::driving_licence, at, end));
    const std::string_view prefix = word.substr(0, 2);
    if (word.size() == 13 && (prefix == "IT" || prefix == "it") &&
        partita_iva_holds(word.substr(2)))
        return recognised(found(FindingKind::partita_iva, at, end, Checksum::valid));
    return named_document_at(text, at, end, word);
}

Recognised number_at(std::string_view text, std::size_t at) noexcept {
    if (const Recognised health = health_card_at(text, at); health.finding) return health;
    if (const Recognised ssn = ssn_at(text, at); ssn.finding) return ssn;
    const std::size_t end = word_end(text, at);
    if (const Recognised iva = partita_iva_at(text, at, end); iva.finding) return iva;
    const std::string_view word = text.substr(at, end - at);
    return named_document_at(text, at, end, word);
}

}  // namespace molly::annotate
