// IBAN and payment cards.
#include <algorithm>
#include <array>

#include "annotate/internal/checksums.h"
#include "annotate/internal/recognisers.h"

namespace molly::annotate {
namespace {

constexpr std::size_t card_digits_min = 13;
constexpr std::size_t card_digits_max = 19;
constexpr std::size_t context_reach = 48;  // bytes before a number in which a word explains it

/// The number whose first `count` digits `digits` begins with.
int prefix(std::string_view digits, std::size_t count) noexcept {
    int value = 0;
    for (std::size_t i = 0; i < count; ++i)
        value = value * 10 + (digits[i] - '0');
    return value;
}

constexpr bool within(int value, int low, int high) noexcept {
    return value >= low && value <= high;
}

/// Whether a brand issues cards that begin so and are so long (ISO/IEC 7812 ranges as published by
/// the brands; Maestro beside them in `rare`).
bool brand_holds(std::string_view digits, bool rare) noexcept {
    const std::size_t length = digits.size();
    const int two = prefix(digits, 2);
    const int three = prefix(digits, 3);
    const int four = prefix(digits, 4);
    if (digits[0] == '4') return length == 13 || length == 16 || length == 19;
    if (within(two, 51, 55) || within(four, 2221, 2720)) return length == 16;
    if (two == 34 || two == 37) return length == 15;
    if (four == 6011 || within(three, 644, 649) || two == 65) return length >= 16;
    if (within(four, 3528, 3589) || two == 62) return length >= 16;
    if (within(three, 300, 305) || three == 309 || two == 36 || two == 38 || two == 39)
        return length == 14;
    return rare && (two == 50 || within(two, 56, 69));
}

/// Whether the groups of the first `count` digits are those of a card: fours, or 4-6-5.
bool groups_hold(const Compact& digits, std::size_t count) noexcept {
    std::array<std::size_t, Compact::capacity> groups{};
    std::size_t number = 0;
    std::size_t length = 0;
    for (std::size_t i = 0; i < count; ++i) {
        ++length;
        if (i + 1 < count && !digits.ends_group(i)) continue;
        groups[number++] = length;
        length = 0;
    }
    if (number == 1) return true;
    if (number == 3) return groups[0] == 4 && groups[1] == 6 && (groups[2] == 5 || groups[2] == 4);
    const auto last = groups.cbegin() + static_cast<std::ptrdiff_t>(number - 1);
    return number >= 4 &&
           std::all_of(groups.cbegin(), last, [](std::size_t group) { return group == 4; }) &&
           *last <= 4;
}

}  // namespace

Recognised iban_at(std::string_view text, std::size_t at) noexcept {
    if (!is_letter(char_at(text, at)) || !is_letter(char_at(text, at + 1))) return {};
    const char third = char_at(text, at + 2);
    if (!is_digit(third) && blank_at(text, at + 2) == 0 && hyphen_at(text, at + 2) == 0) return {};
    const std::array<char, 2> code = {to_upper(text[at]), to_upper(text[at + 1])};
    const std::string_view structure = iban_structure({code.data(), code.size()});
    if (structure.empty()) return {};
    const std::size_t length = iban_length(structure);
    const Compact all = compact(text, at, {.letters = true, .lines = false, .longest = length});
    if (!all.closes(length)) return {};
    const std::string_view iban = all.text().substr(0, length);
    if (!is_digit(iban[2]) || !is_digit(iban[3]) || !iban_shape_holds(iban, structure)) return {};
    const Checksum checksum = iban_holds(iban) ? Checksum::valid : Checksum::invalid;
    return recognised(found(FindingKind::iban, at, all.end(length), checksum));
}

Recognised card_at(std::string_view text, std::size_t at) noexcept {
    if (!is_digit(char_at(text, at))) return {};
    const Compact all =
        compact(text, at, {.letters = false, .lines = false, .longest = card_digits_max});
    if (all.size < card_digits_min) return {};
    const bool named = context_before(text, at, context_reach,
                                      {"card", "carta", "carte", "visa", "mastercard", "amex",
                                       "american express", "maestro", "cc ", "bancomat", "pan"});
    std::size_t refuted = 0;  // digits of a card's shape whose check digit is wrong
    for (std::size_t count = std::min(all.size, card_digits_max); count >= card_digits_min;
         --count) {
        if (!all.closes(count) || !groups_hold(all, count)) continue;
        const std::string_view digits = all.text().substr(0, count);
        if (!brand_holds(digits, named)) continue;
        if (luhn_holds(digits))
            return recognised(found(FindingKind::card, at, all.end(count), Checksum::valid));
        if (refuted == 0) refuted = count;
    }
    if (!named || refuted == 0) return {};
    return recognised(found(FindingKind::card, at, all.end(refuted), Checksum::invalid));
}

}  // namespace molly::annotate
