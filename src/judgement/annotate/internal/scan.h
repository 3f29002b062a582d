#pragma once
// The words that all recognisers share: characters, separators, compact forms, context. Pure.
//
// A recogniser gets the text and a place where something may begin, and answers with what begins
// there. Identifiers are ASCII; any other character may stand beside one.
#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "domain/finding.h"

namespace molly::annotate {

using domain::Checksum;
using domain::Finding;
using domain::FindingKind;

constexpr bool is_digit(char c) noexcept {
    return c >= '0' && c <= '9';
}
constexpr bool is_upper(char c) noexcept {
    return c >= 'A' && c <= 'Z';
}
constexpr bool is_lower(char c) noexcept {
    return c >= 'a' && c <= 'z';
}
constexpr bool is_letter(char c) noexcept {
    return is_upper(c) || is_lower(c);
}
constexpr bool is_alnum(char c) noexcept {
    return is_digit(c) || is_letter(c);
}
constexpr bool is_ascii(char c) noexcept {
    return static_cast<unsigned char>(c) < 0x80;
}
constexpr char to_upper(char c) noexcept {
    return is_lower(c) ? static_cast<char>(c - 'a' + 'A') : c;
}
constexpr char to_lower(char c) noexcept {
    return is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c;
}
constexpr bool is_hex(char c) noexcept {
    return is_digit(c) || (to_lower(c) >= 'a' && to_lower(c) <= 'f');
}
/// The character at `at`, or NUL beyond the text.
constexpr char char_at(std::string_view text, std::size_t at) noexcept {
    return at < text.size() ? text[at] : '\0';
}

/// Bytes of the blank at `at`: space, tab, or one of Unicode's spaces on one line; 0: none.
std::size_t blank_at(std::string_view text, std::size_t at) noexcept;
/// Bytes of the hyphen or dash at `at`; 0: none.
std::size_t hyphen_at(std::string_view text, std::size_t at) noexcept;
/// Bytes of the letter (of any script) that begins at `at`; 0: none. An approximation by blocks.
std::size_t foreign_letter_at(std::string_view text, std::size_t at) noexcept;
/// The end of the run of ASCII letters and digits that begins at `at`.
std::size_t word_end(std::string_view text, std::size_t at) noexcept;

/// Letters and digits without what groups them, in upper case, and where each ends in the text.
struct Compact {
    static constexpr std::size_t capacity = 40;
    std::array<char, capacity> characters{};
    std::array<std::uint32_t, capacity> ends{};
    std::uint64_t grouped = 0;  ///< bit i: a separator stands after character i
    std::size_t size = 0;

    std::string_view text() const noexcept { return {characters.data(), size}; }
    bool ends_group(std::size_t i) const noexcept { return ((grouped >> i) & 1U) != 0; }
    /// The place after the first `count` characters.
    std::size_t end(std::size_t count) const noexcept { return ends[count - 1]; }
    /// Whether the text has a boundary after the first `count` characters.
    bool closes(std::size_t count) const noexcept {
        return count <= size && (count == size || ends_group(count - 1));
    }
};

struct Grouping {
    bool letters = true;  ///< letters belong to it, not digits alone
    bool lines = false;   ///< a line break may split it
    std::size_t longest = Compact::capacity;
};

/// Reads letters and digits from `begin` over single separators (blanks, hyphens). Reads one
/// character beyond `longest`, so that a longer word shows as not closed.
Compact compact(std::string_view text, std::size_t begin, const Grouping& grouping) noexcept;

/// Whether one of the lower-case ASCII `words` stands at most `reach` bytes before `begin`, as the
/// beginning of a word.
bool context_before(std::string_view text, std::size_t begin, std::size_t reach,
                    std::initializer_list<std::string_view> words) noexcept;
bool context_after(std::string_view text, std::size_t end, std::size_t reach,
                   std::initializer_list<std::string_view> words) noexcept;

/// Shannon entropy of the bytes, in bits each.
double entropy(std::string_view text) noexcept;

/// A finding from `begin` to `end`.
Finding found(FindingKind kind, std::size_t begin, std::size_t end,
              Checksum checksum = Checksum::none) noexcept;

}  // namespace molly::annotate
