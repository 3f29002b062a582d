#include "annotate/internal/scan.h"

#include <algorithm>
#include <cmath>

namespace molly::annotate {
namespace {

constexpr unsigned byte_at(std::string_view text, std::size_t at) noexcept {
    return at < text.size() ? static_cast<unsigned char>(text[at]) : 0U;
}

/// The code point of three bytes that begin with E2 80, by its last byte; 0: another one.
unsigned punctuation_at(std::string_view text, std::size_t at) noexcept {
    return byte_at(text, at) == 0xE2 && byte_at(text, at + 1) == 0x80 ? byte_at(text, at + 2) : 0;
}

constexpr std::size_t lowered_max = 96;

/// The ASCII lower-case form of at most lowered_max bytes of `text`.
struct Lowered {
    explicit Lowered(std::string_view text) noexcept : size(std::min(text.size(), lowered_max)) {
        std::transform(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(size),
                       bytes.begin(), to_lower);
    }
    std::string_view text() const noexcept { return {bytes.data(), size}; }

    std::array<char, lowered_max> bytes{};
    std::size_t size;
};

bool holds_word(std::string_view lowered, std::string_view word) noexcept {
    for (std::size_t at = lowered.find(word); at != std::string_view::npos;
         at = lowered.find(word, at + 1)) {
        if (at == 0 || !is_alnum(lowered[at - 1])) return true;
    }
    return false;
}

bool holds_one(std::string_view text, std::initializer_list<std::string_view> words) noexcept {
    const Lowered lowered(text);
    return std::any_of(words.begin(), words.end(),
                       [&](std::string_view word) { return holds_word(lowered.text(), word); });
}

/// Bytes of what may stand between two groups at `at`; 0: nothing that may.
std::size_t separator_at(std::string_view text, std::size_t at, bool lines) noexcept {
    if (const std::size_t hyphen = hyphen_at(text, at)) return hyphen;
    std::size_t end = at;
    if (lines) {
        while (const std::size_t blank = blank_at(text, end))
            end += blank;
        if (char_at(text, end) == '\r') ++end;
        if (char_at(text, end) == '\n') {
            ++end;
            while (const std::size_t blank = blank_at(text, end))
                end += blank;
            return end - at;
        }
    }
    return blank_at(text, at);
}

}  // namespace

std::size_t blank_at(std::string_view text, std::size_t at) noexcept {
    const unsigned first = byte_at(text, at);
    if (first == ' ' || first == '\t') return 1;
    if (first == 0xC2) return byte_at(text, at + 1) == 0xA0 ? 2 : 0;
    if (first != 0xE2) return 0;
    const unsigned last = punctuation_at(text, at);
    return (last >= 0x80 && last <= 0x8B) || last == 0xAF ? 3 : 0;
}

std::size_t hyphen_at(std::string_view text, std::size_t at) noexcept {
    const unsigned first = byte_at(text, at);
    if (first == '-') return 1;
    if (first != 0xE2) return 0;
    const unsigned last = punctuation_at(text, at);
    if (last >= 0x90 && last <= 0x95) return 3;
    return byte_at(text, at + 1) == 0x88 && byte_at(text, at + 2) == 0x92 ? 3 : 0;  // U+2212
}

std::size_t foreign_letter_at(std::string_view text, std::size_t at) noexcept {
    const unsigned first = byte_at(text, at);
    const auto continues = [&](std::size_t count) {
        for (std::size_t i = 1; i <= count; ++i) {
            if ((byte_at(text, at + i) & 0xC0U) != 0x80U) return false;
        }
        return true;
    };
    if (first >= 0xC3 && first <= 0xDF) {
        const bool sign =
            first == 0xC3 && (byte_at(text, at + 1) == 0x97 || byte_at(text, at + 1) == 0xB7);
        return continues(1) && !sign ? 2 : 0;
    }
    if (first < 0xE0 || first > 0xED || first == 0xE2) return 0;
    if (first == 0xE3 && byte_at(text, at + 1) == 0x80) return 0;  // CJK punctuation
    return continues(2) ? 3 : 0;
}

std::size_t word_end(std::string_view text, std::size_t at) noexcept {
    while (at < text.size() && is_alnum(text[at]))
        ++at;
    return at;
}

Compact compact(std::string_view text, std::size_t begin, const Grouping& grouping) noexcept {
    Compact out;
    const std::size_t most = std::min(grouping.longest + 1, Compact::capacity);
    std::size_t at = begin;
    while (out.size < most) {
        const char c = char_at(text, at);
        if (grouping.letters ? is_alnum(c) : is_digit(c)) {
            out.characters[out.size] = to_upper(c);
            out.ends[out.size++] = static_cast<std::uint32_t>(++at);
            continue;
        }
        if (out.size == 0) break;
        out.grouped |= std::uint64_t{1} << (out.size - 1);
        const std::size_t separator = separator_at(text, at, grouping.lines);
        if (separator == 0) break;
        at += separator;
        if (!is_alnum(char_at(text, at))) break;
    }
    // A word that goes on in letters is not closed by the end of its digits.
    if (!grouping.letters && out.size > 0 && is_letter(char_at(text, out.ends[out.size - 1]))) {
        out.grouped &= ~(std::uint64_t{1} << (out.size - 1));
        --out.size;
        while (out.size > 0 && !out.ends_group(out.size - 1))
            --out.size;
    }
    return out;
}

bool context_before(std::string_view text, std::size_t begin, std::size_t reach,
                    std::initializer_list<std::string_view> words) noexcept {
    reach = std::min({reach, begin, lowered_max});
    return holds_one(text.substr(begin - reach, reach), words);
}

bool context_after(std::string_view text, std::size_t end, std::size_t reach,
                   std::initializer_list<std::string_view> words) noexcept {
    if (end >= text.size()) return false;
    return holds_one(text.substr(end, std::min(reach, lowered_max)), words);
}

double entropy(std::string_view text) noexcept {
    if (text.empty()) return 0;
    std::array<std::uint32_t, 256> counts{};
    for (const char c : text)
        ++counts[static_cast<unsigned char>(c)];
    double bits = 0;
    for (const std::uint32_t count : counts) {
        if (count == 0) continue;
        const double share = static_cast<double>(count) / static_cast<double>(text.size());
        bits -= share * std::log2(share);
    }
    return bits;
}

Finding found(FindingKind kind, std::size_t begin, std::size_t end, Checksum checksum) noexcept {
    return {kind, checksum, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)};
}

}  // namespace molly::annotate
