#include "annotate/internal/escapes.h"

namespace molly::annotate {
namespace {

int hex_digit(char c) noexcept {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/// The four hexadecimal digits at `at`, or -1.
int code_unit(std::string_view text, std::size_t at) noexcept {
    if (at + 4 > text.size()) return -1;
    int unit = 0;
    for (std::size_t i = at; i < at + 4; ++i) {
        const int digit = hex_digit(text[i]);
        if (digit < 0) return -1;
        unit = unit * 16 + digit;
    }
    return unit;
}

void append_utf8(std::string& out, int code) {
    const auto put = [&](int byte) { out += static_cast<char>(byte); };
    if (code < 0x80) {
        put(code);
    } else if (code < 0x800) {
        put(0xC0 | (code >> 6));
        put(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
        put(0xE0 | (code >> 12));
        put(0x80 | ((code >> 6) & 0x3F));
        put(0x80 | (code & 0x3F));
    } else {
        put(0xF0 | (code >> 18));
        put(0x80 | ((code >> 12) & 0x3F));
        put(0x80 | ((code >> 6) & 0x3F));
        put(0x80 | (code & 0x3F));
    }
}

/// Undoes the `\u` escape whose digits begin at `at`; gives the bytes that it used, 0 for none.
std::size_t append_unicode_escape(std::string& out, std::string_view text, std::size_t at) {
    const int unit = code_unit(text, at);
    if (unit < 0) return 0;
    const bool high = unit >= 0xD800 && unit < 0xDC00;
    if (high && text.substr(at + 4, 2) == "\\u") {
        const int low = code_unit(text, at + 6);
        if (low >= 0xDC00 && low < 0xE000) {
            append_utf8(out, 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00));
            return 10;
        }
    }
    append_utf8(out, unit);
    return 4;
}

/// Undoes the escape whose backslash is at `at`; gives the bytes that it used.
std::size_t append_escape(std::string& out, std::string_view text, std::size_t at) {
    static constexpr std::string_view letters = "nrtbf";
    static constexpr std::string_view meanings = "\n\r\t\b\f";
    if (at + 1 == text.size()) {
        out += text[at];
        return 1;
    }
    const char escape = text[at + 1];
    const std::size_t letter = letters.find(escape);
    if (letter != std::string_view::npos) {
        out += meanings[letter];
        return 2;
    }
    if (escape == 'u') {
        const std::size_t used = append_unicode_escape(out, text, at + 2);
        if (used > 0) return 2 + used;
    }
    out += escape;
    return 2;
}

}  // namespace

std::string without_escapes(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
        if (text[at] == '\\') {
            at += append_escape(out, text, at);
        } else {
            out += text[at++];
        }
    }
    return out;
}

Unescaped unescape(std::string_view text) {
    Unescaped out;
    out.text.reserve(text.size());
    out.origins.reserve(text.size() + 1);
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t used = text[at] == '\\' ? append_escape(out.text, text, at) : 1;
        if (text[at] != '\\') out.text += text[at];
        out.origins.resize(out.text.size(), static_cast<std::uint32_t>(at));
        at += used;
    }
    out.origins.push_back(static_cast<std::uint32_t>(text.size()));
    return out;
}

domain::Finding in_origin(const Unescaped& unescaped, domain::Finding finding) noexcept {
    const auto& origins = unescaped.origins;
    // An escape may stand for several bytes: the end is behind the whole of it.
    std::size_t end = finding.end;
    while (end < unescaped.text.size() && origins[end] == origins[end - 1])
        ++end;
    finding.begin = origins[finding.begin];
    finding.end = origins[end];
    return finding;
}

}  // namespace molly::annotate
