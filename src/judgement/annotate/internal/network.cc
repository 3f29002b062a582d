// E-mail addresses, credentials in URLs, IP and MAC addresses.
#include <algorithm>
#include <array>

#include "annotate/internal/recognisers.h"

namespace molly::annotate {
namespace {

constexpr std::size_t local_part_max = 64;  // RFC 5321, section 4.5.3.1.1
constexpr std::size_t domain_max = 255;
constexpr std::size_t user_part_max = 512;

constexpr bool local_byte(char c) noexcept {
    return is_alnum(c) || c == '.' || c == '_' || c == '%' || c == '+' || c == '-' || c == '\'' ||
           c == '&';
}

/// The beginning of the letter of another script that ends before `end`; `end`: none does.
std::size_t foreign_letter_before(std::string_view text, std::size_t end) noexcept {
    for (std::size_t length = 2; length <= 3 && length <= end; ++length) {
        if (foreign_letter_at(text, end - length) == length) return end - length;
    }
    return end;
}

std::size_t local_part_begin(std::string_view text, std::size_t at) noexcept {
    std::size_t begin = at;
    while (begin > 0 && at - begin < local_part_max) {
        if (local_byte(text[begin - 1])) {
            --begin;
            continue;
        }
        const std::size_t letter =
            is_ascii(text[begin - 1]) ? begin : foreign_letter_before(text, begin);
        if (letter == begin) break;
        begin = letter;
    }
    while (begin < at && is_ascii(text[begin]) && !is_alnum(text[begin]) && text[begin] != '_')
        ++begin;
    return begin;
}

/// The end of the domain that begins at `at`, and whether it has a top level; `at`: none.
std::size_t domain_end(std::string_view text, std::size_t at) noexcept {
    std::size_t end = at;
    std::size_t label = at;  // where the current label begins
    std::size_t good = at;   // after the last label that could be a top level
    bool dotted = false;
    while (end < text.size() && end - at < domain_max) {
        const char c = text[end];
        const std::size_t step = is_alnum(c) || c == '-' ? 1 : foreign_letter_at(text, end);
        if (step > 0) {
            end += step;
            const bool top = end - label >= 2 && !is_digit(text[label]) && c != '-';
            if (dotted && top) good = end;
        } else if (c == '.' && end > label) {
            label = ++end;
            dotted = true;
        } else {
            break;
        }
    }
    return good;
}

/// Reads a decimal byte without leading zeros; nothing is -1.
int decimal_byte(std::string_view text, std::size_t& at) noexcept {
    const std::size_t begin = at;
    int value = 0;
    while (at < text.size() && is_digit(text[at]) && at - begin < 4)
        value = value * 10 + (text[at++] - '0');
    const std::size_t digits = at - begin;
    if (digits == 0 || digits > 3 || value > 255 || (digits > 1 && text[begin] == '0')) return -1;
    return value;
}

/// The end of the IPv4 address at `at`; 0: none. Loopback, unspecified, broadcast and masks
/// identify nobody and count as none.
std::size_t ipv4_end(std::string_view text, std::size_t at) noexcept {
    if (at > 0 && (text[at - 1] == '.' || text[at - 1] == '-')) return 0;
    std::array<int, 4> bytes{};
    std::size_t end = at;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        if (i > 0 && char_at(text, end++) != '.') return 0;
        bytes[i] = decimal_byte(text, end);
        if (bytes[i] < 0) return 0;
    }
    const char next = char_at(text, end);
    if (is_alnum(next) || (next == '.' && is_digit(char_at(text, end + 1)))) return 0;
    if (bytes[0] == 0 || bytes[0] == 127 || bytes[0] == 255) return 0;
    if (context_before(text, at, 16, {"version", "versione", "release", "ver.", "v."})) return 0;
    return end;
}

std::size_t hex_run(std::string_view text, std::size_t at) noexcept {
    std::size_t end = at;
    while (is_hex(char_at(text, end)))
        ++end;
    return end - at;
}

/// Six pairs with `:` or `-` between them, or three fours with `.`.
std::size_t mac_end(std::string_view text, std::size_t at) noexcept {
    const std::size_t width = hex_run(text, at);
    if (width != 2 && width != 4) return 0;
    const char separator = char_at(text, at + width);
    if (width == 4 ? separator != '.' : separator != ':' && separator != '-') return 0;
    std::size_t end = at + width;
    for (std::size_t group = 1; group < 12 / width; ++group) {
        if (char_at(text, end) != separator || hex_run(text, end + 1) != width) return 0;
        end += 1 + width;
    }
    const bool more = char_at(text, end) == separator && is_hex(char_at(text, end + 1));
    return more || is_alnum(char_at(text, end)) ? 0 : end;
}

/// Eight groups, or fewer with one `::` (RFC 4291, section 2.2); `::` and `::1` count as none.
std::size_t ipv6_end(std::string_view text, std::size_t at) noexcept {
    std::size_t end = at;
    std::size_t groups = 0;
    bool gap = false;
    bool digit = false;
    while (groups < 8) {
        const std::size_t width = hex_run(text, end);
        if (width > 4) return 0;
        for (std::size_t i = 0; i < width; ++i)
            digit = digit || is_digit(text[end + i]);
        groups += width > 0 ? 1 : 0;
        end += width;
        if (char_at(text, end) != ':') break;
        if (char_at(text, end + 1) == ':') {
            if (gap) return 0;
            gap = true;
            end += 2;
        } else if (width > 0 && groups < 8 && is_hex(char_at(text, end + 1))) {
            ++end;
        } else {
            break;
        }
    }
    const bool whole = gap ? groups >= 2 && groups < 8 && digit : groups == 8;
    const char next = char_at(text, end);
    if (!whole || is_alnum(next) || (next == ':' && is_alnum(char_at(text, end + 1)))) return 0;
    return end;
}

}  // namespace

Recognised email_around(std::string_view text, std::size_t at) noexcept {
    const std::size_t begin = local_part_begin(text, at);
    const std::size_t end = domain_end(text, at + 1);
    if (begin == at || end == at + 1 || text[at - 1] == '.') return {};
    return recognised(found(FindingKind::email, begin, end));
}

Recognised url_credentials_at(std::string_view text, std::size_t at) noexcept {
    const std::size_t begin = at + 3;
    std::size_t colon = 0;
    std::size_t last = 0;  // the last @ is the one that ends the user's part
    for (std::size_t i = begin; i < text.size() && i - begin < user_part_max; ++i) {
        const char c = text[i];
        if (static_cast<unsigned char>(c) <= ' ' ||
            std::string_view("/?#\"'<>`").find(c) != std::string_view::npos)
            break;
        if (c == ':' && colon == 0) colon = i;
        if (c == '@') last = i;
    }
    if (colon == 0 || last == 0 || colon == begin || colon + 1 >= last) return {};
    // The pass goes on behind the @, which belongs to no e-mail address.
    return {found(FindingKind::url_credentials, begin, last), last + 1};
}

Recognised network_address_at(std::string_view text, std::size_t at) noexcept {
    const std::size_t width = hex_run(text, at);
    const char next = char_at(text, at + width);
    if (width > 4 || (width > 0 && !is_digit(next) && next != ':' && next != '.' && next != '-'))
        return {};
    if (const std::size_t end = mac_end(text, at))
        return recognised(found(FindingKind::mac_address, at, end));
    if (next == ':') {
        if (const std::size_t end = ipv6_end(text, at))
            return recognised(found(FindingKind::ip_address, at, end));
    }
    if (next == '.' && is_digit(char_at(text, at))) {
        if (const std::size_t end = ipv4_end(text, at))
            return recognised(found(FindingKind::ip_address, at, end));
    }
    return {};
}

}  // namespace molly::annotate
