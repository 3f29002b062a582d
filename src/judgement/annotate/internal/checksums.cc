#include "annotate/internal/checksums.h"

#include <algorithm>
#include <array>

#include "annotate/internal/scan.h"

namespace molly::annotate {
namespace {

struct Country {
    std::string_view code;
    std::string_view structure;
};

// ISO 13616 registry, by country code.
constexpr auto countries = std::to_array<Country>({
    {"AD", "8n12c"},    {"AE", "19n"},      {"AL", "8n16c"},  {"AT", "16n"},     {"AZ", "4a20c"},
    {"BA", "16n"},      {"BE", "12n"},      {"BG", "4a6n8c"}, {"BH", "4a14c"},   {"BI", "23n"},
    {"BR", "23n1a1c"},  {"BY", "4c4n16c"},  {"CH", "5n12c"},  {"CR", "18n"},     {"CY", "8n16c"},
    {"CZ", "20n"},      {"DE", "18n"},      {"DJ", "23n"},    {"DK", "14n"},     {"DO", "4c20n"},
    {"EE", "16n"},      {"EG", "25n"},      {"ES", "20n"},    {"FI", "14n"},     {"FK", "2a12n"},
    {"FO", "14n"},      {"FR", "10n11c2n"}, {"GB", "4a14n"},  {"GE", "2a16n"},   {"GI", "4a15c"},
    {"GL", "14n"},      {"GR", "7n16c"},    {"GT", "4c20c"},  {"HR", "17n"},     {"HU", "24n"},
    {"IE", "4a14n"},    {"IL", "19n"},      {"IQ", "4a15n"},  {"IS", "22n"},     {"IT", "1a10n12c"},
    {"JO", "4a4n18c"},  {"KW", "4a22c"},    {"KZ", "3n13c"},  {"LB", "4n20c"},   {"LC", "4a24c"},
    {"LI", "5n12c"},    {"LT", "16n"},      {"LU", "3n13c"},  {"LV", "4a13c"},   {"LY", "21n"},
    {"MC", "10n11c2n"}, {"MD", "2c18c"},    {"ME", "18n"},    {"MK", "3n10c2n"}, {"MR", "23n"},
    {"MT", "4a5n18c"},  {"MU", "4a19n3a"},  {"NI", "4a20n"},  {"NL", "4a10n"},   {"NO", "11n"},
    {"PK", "4a16c"},    {"PL", "24n"},      {"PS", "4a21c"},  {"PT", "21n"},     {"QA", "4a21c"},
    {"RO", "4a16c"},    {"RS", "18n"},      {"RU", "14n15c"}, {"SA", "2n18c"},   {"SC", "4a20n3a"},
    {"SD", "14n"},      {"SE", "20n"},      {"SI", "15n"},    {"SK", "20n"},     {"SM", "1a10n12c"},
    {"SO", "19n"},      {"ST", "21n"},      {"SV", "4a20n"},  {"TL", "19n"},     {"TN", "20n"},
    {"TR", "6n16c"},    {"UA", "6n19c"},    {"VA", "18n"},    {"VG", "4a16n"},   {"XK", "16n"},
});

constexpr int value_of(char c) noexcept {
    return is_digit(c) ? c - '0' : c - 'A' + 10;
}

/// Steps over one `<count><class>` of a structure; `kind` is its class.
std::size_t next_run(std::string_view structure, std::size_t& at, char& kind) noexcept {
    std::size_t count = 0;
    while (at < structure.size() && is_digit(structure[at]))
        count = count * 10 + static_cast<std::size_t>(structure[at++] - '0');
    kind = char_at(structure, at++);
    return count;
}

// Values of the characters in odd places of a codice fiscale (D.M. 23 December 1976, annex), which
// the CIN of Italian accounts uses too; by 0 to 9, or by A to Z.
constexpr std::array<int, 26> odd_values = {1,  0,  5, 7, 9, 13, 15, 17, 19, 21, 2,  4,  18,
                                            20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23};

constexpr int letter_index(char c) noexcept {
    return is_digit(c) ? c - '0' : c - 'A';
}

/// The check letter over characters whose first place is odd.
char check_letter(std::string_view characters) noexcept {
    int sum = 0;
    for (std::size_t i = 0; i < characters.size(); ++i) {
        const int index = letter_index(characters[i]);
        sum += i % 2 == 0 ? odd_values[static_cast<std::size_t>(index)] : index;
    }
    return static_cast<char>('A' + sum % 26);
}

constexpr std::string_view omocodia = "LMNPQRSTUV";  // stand for 0 to 9

/// The digit that `c` is or stands for, or -1.
int omocodia_digit(char c) noexcept {
    if (is_digit(c)) return c - '0';
    const std::size_t place = omocodia.find(c);
    return place == std::string_view::npos ? -1 : static_cast<int>(place);
}

}  // namespace

bool luhn_holds(std::string_view digits) noexcept {
    int sum = 0;
    for (std::size_t i = 0; i < digits.size(); ++i) {
        int digit = digits[digits.size() - 1 - i] - '0';
        if (i % 2 == 1) digit = digit * 2 > 9 ? digit * 2 - 9 : digit * 2;
        sum += digit;
    }
    return !digits.empty() && sum % 10 == 0;
}

std::string_view iban_structure(std::string_view country) noexcept {
    const auto* place =
        std::lower_bound(countries.begin(), countries.end(), country,
                         [](const Country& one, std::string_view code) { return one.code < code; });
    return place != countries.end() && place->code == country ? place->structure
                                                              : std::string_view();
}

std::size_t iban_length(std::string_view structure) noexcept {
    std::size_t length = 4;
    char kind = 0;
    for (std::size_t at = 0; at < structure.size();)
        length += next_run(structure, at, kind);
    return length;
}

bool iban_shape_holds(std::string_view iban, std::string_view structure) noexcept {
    std::size_t place = 4;
    for (std::size_t at = 0; at < structure.size();) {
        char kind = 0;
        for (std::size_t left = next_run(structure, at, kind); left > 0; --left) {
            const char c = char_at(iban, place++);
            if (kind == 'n' ? !is_digit(c) : kind == 'a' ? !is_upper(c) : !is_alnum(c))
                return false;
        }
    }
    return place == iban.size();
}

bool iban_holds(std::string_view iban) noexcept {
    int rest = 0;
    for (std::size_t i = 0; i < iban.size(); ++i) {
        const int value = value_of(iban[(i + 4) % iban.size()]);
        rest = (rest * (value > 9 ? 100 : 10) + value) % 97;
    }
    if (rest != 1) return false;
    const bool italian = iban.starts_with("IT") || iban.starts_with("SM");
    return !italian || check_letter(iban.substr(5)) == iban[4];
}

bool codice_fiscale_shape_holds(std::string_view code) noexcept {
    // L a letter, D a digit or what stands for it, M a month's letter, P a place's letter
    constexpr std::string_view shape = "LLLLLLDDMDDPDDDL";
    if (code.size() != shape.size()) return false;
    for (std::size_t i = 0; i < shape.size(); ++i) {
        const char c = code[i];
        if (shape[i] == 'D' ? omocodia_digit(c) < 0 : !is_upper(c)) return false;
        if (shape[i] == 'M' && std::string_view("ABCDEHLMPRST").find(c) == std::string_view::npos)
            return false;
        if (shape[i] == 'P' && c > 'M' && c != 'Z') return false;
    }
    const int day = omocodia_digit(code[9]) * 10 + omocodia_digit(code[10]);
    return (day >= 1 && day <= 31) || (day >= 41 && day <= 71);  // women: 40 more
}

bool codice_fiscale_holds(std::string_view code) noexcept {
    return codice_fiscale_shape_holds(code) && check_letter(code.substr(0, 15)) == code[15];
}

bool partita_iva_holds(std::string_view digits) noexcept {
    // D.P.R. 633/1972, art. 35: Luhn over eleven digits.
    return digits.size() == 11 && digits.find_first_not_of('0') != std::string_view::npos &&
           luhn_holds(digits);
}

}  // namespace molly::annotate
