// Telephone numbers: international (ITU-T E.164), Italian, North American, and any that a word
// beside it calls one.
#include <algorithm>
#include <array>

#include "annotate/internal/recognisers.h"

namespace molly::annotate {
namespace {

constexpr std::size_t digits_max = 15;  // E.164, section 6
constexpr std::size_t groups_max = 9;

struct Group {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::size_t size() const noexcept { return end - begin; }
};

/// Groups of digits on one line, and how many digits there are up to the end of each.
struct Groups {
    std::array<Group, groups_max> each{};
    std::array<std::size_t, groups_max> digits{};
    std::size_t size = 0;
    bool plus = false;
    bool parenthesis = false;  ///< one of the groups stands in parentheses
    std::size_t begin = 0;
};

/// What may stand between two groups of digits: at most three characters, of which one is a sign.
std::size_t gap_end(std::string_view text, std::size_t at, bool& parenthesis) noexcept {
    std::size_t signs = 0;
    std::size_t end = at;
    while (end - at <= 4) {
        const std::size_t blank = blank_at(text, end);
        const std::size_t hyphen = hyphen_at(text, end);
        const char c = char_at(text, end);
        if (blank > 0) {
            end += blank;
        } else if (hyphen > 0 || c == '.' || c == '/') {
            if (++signs > 1) return at;
            end += hyphen > 0 ? hyphen : 1;
        } else if (c == '(' || c == ')') {
            parenthesis = true;
            ++end;
        } else {
            break;
        }
    }
    return is_digit(char_at(text, end)) ? end : at;
}

Groups read_groups(std::string_view text, std::size_t at) noexcept {
    Groups out;
    out.begin = at;
    if (char_at(text, at) == '+') {
        out.plus = true;
        ++at;
    }
    if (char_at(text, at) == '(') {
        out.parenthesis = true;
        ++at;
        if (char_at(text, at) == '+') {
            out.plus = true;
            ++at;
        }
    }
    std::size_t digits = 0;
    while (out.size < groups_max && is_digit(char_at(text, at))) {
        Group group{at, at};
        while (is_digit(char_at(text, group.end)))
            ++group.end;
        digits += group.size();
        const bool word = is_letter(char_at(text, group.end)) && char_at(text, group.end) != 'x' &&
                          char_at(text, group.end) != 'e';
        if (digits > digits_max + 2 || word) break;
        out.each[out.size] = group;
        out.digits[out.size++] = digits;
        const std::size_t next = gap_end(text, group.end, out.parenthesis);
        if (next == group.end) break;
        at = next;
    }
    return out;
}

/// The most groups whose digits number between the two.
std::size_t longest(const Groups& groups, std::size_t least, std::size_t most) noexcept {
    for (std::size_t count = groups.size; count > 0; --count) {
        if (groups.digits[count - 1] >= least && groups.digits[count - 1] <= most) return count;
    }
    return 0;
}

bool begins(std::string_view text, const Group& group, std::string_view digits) noexcept {
    return text.substr(group.begin, group.size()).starts_with(digits);
}

/// After `+`, or `00` for the country.
std::size_t international(std::string_view text, const Groups& groups) noexcept {
    const Group& first = groups.each[0];
    const bool zeros = !groups.plus && begins(text, first, "00") && first.size() >= 3 &&
                       text[first.begin + 2] != '0';
    const bool one = groups.size > 1 && (begins(text, first, "001") || begins(text, first, "011"));
    if (!groups.plus && !zeros && !one) return 0;
    if (groups.plus && begins(text, first, "0")) return 0;
    const std::size_t prefix = groups.plus ? 0 : 2;
    if (begins(text, first, groups.plus ? "39" : "0039"))
        return longest(groups, prefix + 8, prefix + 13);
    if (begins(text, first, groups.plus ? "1" : "001")) {
        // An American number has ten digits after the 1.
        return longest(groups, prefix + 11, prefix + 11);
    }
    return longest(groups, prefix + 8, prefix + digits_max);
}

std::size_t italian(std::string_view text, const Groups& groups) noexcept {
    const Group& first = groups.each[0];
    if (begins(text, first, "3") && char_at(text, first.begin + 1) != '0') {
        const bool mobile = first.size() == 3 || first.size() == 10 || first.size() == 6;
        return mobile ? longest(groups, 10, 10) : 0;
    }
    const char second = char_at(text, first.begin + 1);
    if (char_at(text, first.begin) != '0' || second == '0' || groups.size < 2) return 0;
    const bool city = begins(text, first, "02") || begins(text, first, "06");
    const bool area = first.size() >= 3 && first.size() <= 5;
    if (!area && !(first.size() == 2 && city)) return 0;
    return longest(groups, 8, 11);
}

std::size_t american(std::string_view text, const Groups& groups) noexcept {
    const std::size_t skip =
        groups.each[0].size() == 1 && begins(text, groups.each[0], "1") ? 1 : 0;
    if (groups.size < skip + 3) return 0;
    const Group& area = groups.each[skip];
    const Group& exchange = groups.each[skip + 1];
    const Group& line = groups.each[skip + 2];
    if (area.size() != 3 || exchange.size() != 3 || line.size() != 4) return 0;
    const bool signs = blank_at(text, area.end) == 0 && blank_at(text, exchange.end) == 0;
    const bool plausible = text[area.begin] >= '2' && text[exchange.begin] >= '2';
    return signs || groups.parenthesis || plausible ? skip + 3 : 0;
}

bool named(std::string_view text, std::size_t begin, std::size_t end) noexcept {
    return context_before(text, begin, 32,
                          {"tel",      "phone",     "cell",           "mobile",     "fax",
                           "call",     "telefon",   "cellulare",      "chiama",     "whatsapp",
                           "recapito", "ring",      "dial",           "sms",        "text me",
                           "reach",    "contattar", "numero di casa", "centralino", "mob"}) ||
           context_after(text, end, 10, {"office", "fax", "mobile", "cell"});
}

std::size_t by_name(std::string_view text, const Groups& groups) noexcept {
    const std::size_t count = longest(groups, 7, digits_max);
    if (count == 0 || groups.size > count) return 0;
    return named(text, groups.begin, groups.each[count - 1].end) ? count : 0;
}

/// After `x`, `ext.` or `int.`: the end of the extension, or `at`.
std::size_t extension_end(std::string_view text, std::size_t at) noexcept {
    std::size_t begin = at + blank_at(text, at);
    for (const std::string_view word : {"x", "ext. ", "ext.", "ext ", "int. ", "int."}) {
        if (!text.substr(begin).starts_with(word)) continue;
        const std::size_t end = word_end(text, begin + word.size());
        const std::size_t length = end - begin - word.size();
        const bool digits = std::all_of(text.begin() + static_cast<std::ptrdiff_t>(end - length),
                                        text.begin() + static_cast<std::ptrdiff_t>(end), is_digit);
        if (length >= 1 && length <= 6 && digits) return end;
    }
    return at;
}

/// Digits of a longer number: `1.234.567,89`, `v3.141`.
bool part_of_number(std::string_view text, const Groups& groups, std::size_t end) noexcept {
    const char before = groups.begin > 0 ? text[groups.begin - 1] : ' ';
    const char far = groups.begin > 1 ? text[groups.begin - 2] : ' ';
    const bool tail =
        (before == '.' || before == ',' || before == '/' || before == '-') && is_alnum(far);
    const char after = char_at(text, end);
    return tail || before == '#' ||
           ((after == ',' || after == '.') && is_digit(char_at(text, end + 1))) || after == '%';
}

}  // namespace

Recognised phone_at(std::string_view text, std::size_t at) noexcept {
    const Groups groups = read_groups(text, at);
    if (groups.size == 0) return {};
    std::size_t count = international(text, groups);
    if (count == 0 && !groups.plus) count = italian(text, groups);
    if (count == 0 && !groups.plus) count = american(text, groups);
    if (count == 0) count = by_name(text, groups);
    if (count == 0) return {};
    const std::size_t last = groups.each[count - 1].end;
    if (part_of_number(text, groups, last) || is_letter(char_at(text, last))) {
        if (extension_end(text, last) == last) return {};
    }
    return recognised(found(FindingKind::phone, at, extension_end(text, last)));
}

}  // namespace molly::annotate
