#include "base/utf8.h"

#include <algorithm>
#include <cstdint>

namespace molly {
namespace {

struct Lead {
    std::size_t length = 0;  // bytes of the whole code point; 0 for an impossible lead byte
    std::uint8_t second_min = 0x80;
    std::uint8_t second_max = 0xBF;
};

// RFC 3629, section 4: overlong forms, surrogates and values above U+10FFFF fail at the second
// byte.
Lead lead_of(std::uint8_t byte) noexcept {
    if (byte < 0x80) return {.length = 1};
    if (byte >= 0xC2 && byte <= 0xDF) return {.length = 2};
    if (byte == 0xE0) return {.length = 3, .second_min = 0xA0};
    if (byte == 0xED) return {.length = 3, .second_max = 0x9F};
    if (byte >= 0xE1 && byte <= 0xEF) return {.length = 3};
    if (byte == 0xF0) return {.length = 4, .second_min = 0x90};
    if (byte >= 0xF1 && byte <= 0xF3) return {.length = 4};
    if (byte == 0xF4) return {.length = 4, .second_max = 0x8F};
    return {};
}

// How many of the first `length` bytes fit the code point that the lead byte promises.
std::size_t fitting(std::string_view text, const Lead& lead) noexcept {
    const std::size_t end = std::min(lead.length, text.size());
    for (std::size_t i = 1; i < end; ++i) {
        const auto byte = static_cast<std::uint8_t>(text[i]);
        const std::uint8_t low = i == 1 ? lead.second_min : std::uint8_t{0x80};
        const std::uint8_t high = i == 1 ? lead.second_max : std::uint8_t{0xBF};
        if (byte < low || byte > high) return i;
    }
    return end;
}

}  // namespace

std::size_t utf8_length(std::string_view text) noexcept {
    if (text.empty()) return 0;
    const Lead lead = lead_of(static_cast<std::uint8_t>(text[0]));
    return lead.length != 0 && fitting(text, lead) == lead.length ? lead.length : 0;
}

std::size_t utf8_incomplete_tail(std::string_view text) noexcept {
    for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
        const std::string_view tail = text.substr(text.size() - back);
        const auto byte = static_cast<std::uint8_t>(tail[0]);
        if ((byte & 0xC0U) == 0x80U) continue;
        const Lead lead = lead_of(byte);
        return lead.length > back && fitting(tail, lead) == back ? back : 0;
    }
    return 0;
}

bool utf8_valid(std::string_view text) noexcept {
    while (!text.empty()) {
        const std::size_t length = utf8_length(text);
        if (length == 0) return false;
        text.remove_prefix(length);
    }
    return true;
}

std::string Utf8Stream::push(std::string_view piece) {
    std::string text = std::move(held_);
    text += piece;
    const std::size_t tail = utf8_incomplete_tail(text);
    held_ = text.substr(text.size() - tail);
    text.erase(text.size() - tail);
    if (utf8_valid(text)) return text;
    std::string mended;
    for (std::string_view rest = text; !rest.empty();) {
        const std::size_t length = utf8_length(rest);
        mended += length != 0 ? rest.substr(0, length) : std::string_view("\xEF\xBF\xBD");
        rest.remove_prefix(std::max<std::size_t>(length, 1));
    }
    return mended;
}

}  // namespace molly
