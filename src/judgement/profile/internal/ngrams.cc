#include "profile/internal/ngrams.h"

#include <algorithm>

namespace molly::profile {
namespace {

constexpr std::size_t head_bytes = 6144;
constexpr std::size_t tail_bytes = 2048;
constexpr std::size_t first_words = 10;
constexpr std::size_t last_words = 8;
constexpr std::size_t piece_short = 4;
constexpr std::size_t piece_long = 5;
constexpr std::size_t word_bytes_max = 32;

/// One namespace per kind of feature.
enum Kind : std::uint64_t { word = 1, pair, piece, sign, first, first_pair, last, last_pair };

constexpr std::uint64_t mix(std::uint64_t a, std::uint64_t b) noexcept {
    std::uint64_t x = (a ^ b) * 0x9e3779b97f4a7c15U;
    x ^= x >> 32U;
    x *= 0xbf58476d1ce4e5b9U;
    return x ^ (x >> 29U);
}

constexpr std::uint64_t hash_of(std::string_view text) noexcept {
    std::uint64_t hash = 0xcbf29ce484222325U;
    for (const char c : text)
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
    return hash;
}

bool digit(unsigned char c) noexcept {
    return c >= '0' && c <= '9';
}

bool wordly(unsigned char c) noexcept {
    return (c >= 'a' && c <= 'z') || digit(c) || c >= 0x80;
}

struct Word {
    std::string_view text;  // empty for a number
    std::uint64_t hash = 0;
};

/// Numbers count by their shape, so that no model learns them by heart.
Word word_of(std::string_view text) noexcept {
    const auto is_digit = [](char c) { return digit(static_cast<unsigned char>(c)); };
    const auto digits = static_cast<std::size_t>(std::count_if(text.begin(), text.end(), is_digit));
    if (digits == 0) return {text, hash_of(text)};
    const std::uint64_t shape = digits == text.size() ? std::min<std::size_t>(digits, 5) : 6;
    return {{}, mix(shape, 0x2545f491U)};
}

void put(std::vector<std::uint32_t>& out, Kind kind, std::uint64_t a, std::uint64_t b = 0) {
    out.push_back(static_cast<std::uint32_t>(mix(mix(kind, a), b)));
}

/// Pieces of `<word>` of four and five bytes.
void put_pieces(std::vector<std::uint32_t>& out, std::string_view text) {
    if (text.empty() || text.size() < 3) return;
    char padded[word_bytes_max + 2];
    const std::size_t size = std::min(text.size(), word_bytes_max);
    padded[0] = '<';
    std::copy_n(text.begin(), size, padded + 1);
    padded[size + 1] = '>';
    const std::string_view whole(padded, size + 2);
    for (std::size_t at = 0; at + piece_short <= whole.size(); ++at) {
        put(out, piece, hash_of(whole.substr(at, piece_short)));
        if (at + piece_long <= whole.size() && piece_long < whole.size())
            put(out, piece, hash_of(whole.substr(at, piece_long)));
    }
}

void put_edges(std::vector<std::uint32_t>& out, const std::vector<Word>& words) {
    const std::size_t begin = std::min(words.size(), first_words);
    for (std::size_t i = 0; i < begin; ++i) {
        put(out, first, words[i].hash);
        if (i > 0) put(out, first_pair, words[i - 1].hash, words[i].hash);
    }
    // The very first word says more than the others.
    if (!words.empty()) put(out, first_pair, 1, words[0].hash);
    for (std::size_t i = words.size() - std::min(words.size(), last_words); i < words.size(); ++i) {
        put(out, last, words[i].hash);
        if (i > 0) put(out, last_pair, words[i - 1].hash, words[i].hash);
    }
}

constexpr std::string_view signs = "?=+*/^<>{}[]()$%#@\\_\"|~&;";

void fold_into(std::string& out, std::string_view text) {
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto c = static_cast<unsigned char>(text[i]);
        const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0U;
        if (c >= 'A' && c <= 'Z') {
            out += static_cast<char>(c + 32);
        } else if (c == 0xC3 && next >= 0x80 && next <= 0x9E && next != 0x97) {
            out += static_cast<char>(c);
            out += static_cast<char>(next + 0x20);
            ++i;
        } else if (c == 0xE2 && next == 0x80 && i + 2 < text.size()) {
            // Curly quotes, dashes and the like are signs, not letters.
            out += static_cast<unsigned char>(text[i + 2]) == 0x99 ? '\'' : ' ';
            i += 2;
        } else {
            out += static_cast<char>(c);
        }
    }
}

}  // namespace

std::string folded(std::string_view text) {
    std::string out;
    out.reserve(std::min(text.size(), head_bytes + tail_bytes) + 2);
    if (text.size() <= head_bytes + tail_bytes) {
        fold_into(out, text);
        return out;
    }
    fold_into(out, text.substr(0, head_bytes));
    out += ' ';
    fold_into(out, text.substr(text.size() - tail_bytes));
    return out;
}

void features_of(std::string_view text, Features& features) {
    features.whole.clear();
    features.edges.clear();
    const std::string plain = folded(text);
    std::vector<Word> words;
    words.reserve(plain.size() / 5 + 4);
    features.whole.reserve(plain.size() * 2);
    for (std::size_t at = 0; at < plain.size();) {
        if (!wordly(static_cast<unsigned char>(plain[at]))) {
            if (signs.find(plain[at]) != std::string_view::npos)
                put(features.whole, sign, static_cast<unsigned char>(plain[at]));
            ++at;
            continue;
        }
        const std::size_t begin = at;
        while (at < plain.size() && wordly(static_cast<unsigned char>(plain[at])))
            ++at;
        const Word one = word_of(std::string_view(plain).substr(begin, at - begin));
        put(features.whole, word, one.hash);
        if (!words.empty()) put(features.whole, pair, words.back().hash, one.hash);
        put_pieces(features.whole, one.text);
        words.push_back(one);
    }
    put_edges(features.edges, words);
}

}  // namespace molly::profile
