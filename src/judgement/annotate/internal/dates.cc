// Dates of birth: a date that a word before it (or right after) calls one.
#include <array>

#include "annotate/internal/recognisers.h"

namespace molly::annotate {
namespace {

constexpr std::size_t context_reach = 64;

constexpr auto months = std::to_array<std::string_view>({
    "january", "february",  "march",    "april",    "may",      "june",    "july",
    "august",  "september", "october",  "november", "december", "gennaio", "febbraio",
    "marzo",   "aprile",    "maggio",   "giugno",   "luglio",   "agosto",  "settembre",
    "ottobre", "novembre",  "dicembre", "jan",      "feb",      "mar",     "apr",
    "jun",     "jul",       "aug",      "sep",      "sept",     "oct",     "nov",
    "dec",     "gen",       "mag",      "giu",      "lug",      "ago",     "set",
    "ott",     "dic",
});

/// The end of the name of a month at `at`, its full stop included; 0: none.
std::size_t month_end(std::string_view text, std::size_t at) noexcept {
    const std::size_t end = word_end(text, at);
    std::array<char, 9> lowered{};
    const std::size_t size = end - at;
    if (size < 3 || size > lowered.size()) return 0;
    for (std::size_t i = 0; i < size; ++i)
        lowered[i] = to_lower(text[at + i]);
    for (const std::string_view month : months) {
        if (month == std::string_view(lowered.data(), size))
            return char_at(text, end) == '.' && size <= 4 ? end + 1 : end;
    }
    return 0;
}

/// A number of one to `most` digits; its value, or -1.
int number(std::string_view text, std::size_t& at, std::size_t most) noexcept {
    const std::size_t begin = at;
    int value = 0;
    while (is_digit(char_at(text, at)) && at - begin <= most)
        value = value * 10 + (text[at++] - '0');
    return at > begin && at - begin <= most ? value : -1;
}

bool skip_blanks(std::string_view text, std::size_t& at) noexcept {
    const std::size_t begin = at;
    while (const std::size_t blank = blank_at(text, at))
        at += blank;
    return at > begin;
}

constexpr bool day_holds(int day) noexcept {
    return day >= 1 && day <= 31;
}
constexpr bool year_holds(int year) noexcept {
    return (year >= 1850 && year <= 2100) || (year >= 0 && year <= 99);
}

/// `12/3/1980`, `12-03-80`, `12.3.1980`, `1980-03-12`.
std::size_t numeric_end(std::string_view text, std::size_t at) noexcept {
    std::size_t end = at;
    const int first = number(text, end, 4);
    const std::size_t width = end - at;
    const char separator = char_at(text, end);
    if (first < 0 || width == 3 || (separator != '/' && separator != '-' && separator != '.'))
        return 0;
    const int second = number(text, ++end, 2);
    if (second < 1 || char_at(text, end) != separator) return 0;
    const std::size_t last = ++end;
    const int third = number(text, end, 4);
    if (third < 0 || is_alnum(char_at(text, end)) || end - last == 3) return 0;
    if (char_at(text, end) == separator && is_digit(char_at(text, end + 1))) return 0;
    if (width == 4) return year_holds(first) && second <= 12 && day_holds(third) ? end : 0;
    // Month and day stand in either order.
    const bool days = day_holds(first) && day_holds(second) && (first <= 12 || second <= 12);
    return days && width <= 2 && year_holds(third) && end - last >= 2 ? end : 0;
}

/// `12 marzo 1980`, `1° gennaio 1970`, `3rd of May, 1990`.
std::size_t day_first_end(std::string_view text, std::size_t at) noexcept {
    std::size_t end = at;
    if (!day_holds(number(text, end, 2))) return 0;
    for (const std::string_view ordinal : {"st", "nd", "rd", "th", "\xC2\xB0", "\xC2\xBA"}) {
        if (text.substr(end).starts_with(ordinal)) end += ordinal.size();
    }
    if (!skip_blanks(text, end)) return 0;
    if (text.substr(end).starts_with("of ")) end += 3;
    end = month_end(text, end);
    if (end == 0) return 0;
    if (char_at(text, end) == ',') ++end;
    if (!skip_blanks(text, end)) return 0;
    const std::size_t year = end;
    if (!year_holds(number(text, end, 4)) || end - year != 4) return 0;
    return end;
}

/// `March 12, 1980`.
std::size_t month_first_end(std::string_view text, std::size_t at) noexcept {
    std::size_t end = month_end(text, at);
    if (end == 0 || !skip_blanks(text, end)) return 0;
    if (!day_holds(number(text, end, 2))) return 0;
    for (const std::string_view ordinal : {"st", "nd", "rd", "th"}) {
        if (text.substr(end).starts_with(ordinal)) end += ordinal.size();
    }
    if (char_at(text, end) == ',') ++end;
    if (!skip_blanks(text, end)) return 0;
    const std::size_t year = end;
    if (!year_holds(number(text, end, 4)) || end - year != 4) return 0;
    return end;
}

bool of_birth(std::string_view text, std::size_t begin, std::size_t end) noexcept {
    return context_before(text, begin, context_reach,
                          {"nato", "nata", "nati", "nate", "nacque", "nascita", "born", "birth",
                           "dob", "d.o.b", "compleanno", "bday", "b-day", "geboren"}) ||
           context_after(text, end, 24, {"birth", "dob", "d.o.b", "nascita"});
}

}  // namespace

Recognised date_at(std::string_view text, std::size_t at) noexcept {
    std::size_t end = 0;
    if (is_digit(char_at(text, at))) {
        end = numeric_end(text, at);
        if (end == 0) end = day_first_end(text, at);
    } else {
        end = month_first_end(text, at);
    }
    if (end == 0) return {};
    if (!of_birth(text, at, end)) return {std::nullopt, end};
    return recognised(found(FindingKind::birth_date, at, end));
}

}  // namespace molly::annotate
