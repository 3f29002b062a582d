#include "annotate/internal/words.h"

#include <algorithm>
#include <array>

namespace molly::annotate {
namespace {

constexpr std::uint64_t hash_seed = 0xcbf29ce484222325U;
constexpr std::uint64_t hash_prime = 0x100000001b3U;  // FNV-1a

constexpr std::size_t word_bytes_max = 64;  // of a longer word the beginning counts

/// Lower case of a two-byte code point (Latin-1, Latin Extended-A, Greek, Cyrillic); others stay.
constexpr unsigned lower_code(unsigned code) noexcept {
    if (code >= 0xC0 && code <= 0xDE && code != 0xD7) return code + 0x20;
    const bool even_is_upper = (code >= 0x100 && code <= 0x137) || (code >= 0x14A && code <= 0x177);
    if (even_is_upper) return code | 1U;
    const bool odd_is_upper = (code >= 0x139 && code <= 0x148) || (code >= 0x179 && code <= 0x17E);
    if (odd_is_upper) return code + (code & 1U);
    if (code >= 0x391 && code <= 0x3A9) return code + 0x20;
    if (code >= 0x410 && code <= 0x42F) return code + 0x20;
    if (code >= 0x400 && code <= 0x40F) return code + 0x50;
    return code;
}

/// What of a word's letters is known about their case.
struct Letters {
    std::array<char, word_bytes_max> lowered{};
    std::size_t size = 0;
    std::size_t count = 0;   ///< letters
    std::size_t uppers = 0;  ///< of them capitals
    std::size_t cased = 0;   ///< letters that have case
    std::size_t digits = 0;
    bool first_upper = false;

    void put(unsigned byte) noexcept {
        if (size < lowered.size()) lowered[size++] = static_cast<char>(byte);
    }
    void add_ascii(char c) noexcept {
        put(static_cast<unsigned char>(to_lower(c)));
        if (is_digit(c)) {
            ++digits;
            return;
        }
        letter(is_upper(c), true);
    }
    void add_two(unsigned first, unsigned second) noexcept {
        const unsigned code = ((first & 0x1FU) << 6U) | (second & 0x3FU);
        const unsigned lower = lower_code(code);
        put(0xC0U | (lower >> 6U));
        put(0x80U | (lower & 0x3FU));
        letter(lower != code, code < 0x530);
    }
    void letter(bool upper, bool has_case) noexcept {
        if (count + digits == 0) first_upper = upper;
        ++count;
        uppers += upper ? 1U : 0U;
        cased += has_case ? 1U : 0U;
    }
    std::string_view text() const noexcept { return {lowered.data(), size}; }
};

Shape shape_of(const Letters& letters) noexcept {
    if (letters.count == 0) {
        const auto many = std::min<std::size_t>(letters.digits, 6) - 1;
        return static_cast<Shape>(static_cast<std::size_t>(Shape::digits_1) + many);
    }
    if (letters.digits > 0) return Shape::alnum;
    if (letters.cased == 0) return Shape::uncased;
    if (letters.uppers == 0) return Shape::lower;
    if (letters.uppers == letters.cased) return letters.count == 1 ? Shape::initial : Shape::upper;
    return letters.first_upper && letters.uppers == 1 ? Shape::capitalised : Shape::mixed;
}

std::uint64_t hash_of(std::string_view bytes) noexcept {
    std::uint64_t hash = hash_seed;
    for (const char byte : bytes)
        hash = (hash ^ static_cast<unsigned char>(byte)) * hash_prime;
    return hash ^ (hash >> 32U);
}

std::uint32_t part_hash(std::string_view bytes) noexcept {
    return static_cast<std::uint32_t>(hash_of(bytes));
}

void describe(Word& word, const Letters& letters) noexcept {
    const std::string_view text = letters.text();
    word.shape = shape_of(letters);
    word.hash = hash_of(text);
    word.prefix = part_hash(text.substr(0, 3));
    const auto suffix = [&](std::size_t length) {
        return part_hash(text.substr(text.size() - std::min(text.size(), length)));
    };
    word.suffix_2 = suffix(2);
    word.suffix_3 = suffix(3);
    word.suffix_4 = suffix(4);
}

/// Reads the word at `at`, which begins with a letter or a digit; gives its end.
std::size_t read_letters(std::string_view text, std::size_t at, std::size_t end,
                         Letters& letters) noexcept {
    while (at < end) {
        const char c = text[at];
        if (is_alnum(c)) {
            letters.add_ascii(c);
            ++at;
            continue;
        }
        const std::size_t length = is_ascii(c) ? 0 : foreign_letter_at(text, at);
        if (length == 0) {
            // A combining mark belongs to the letter before it.
            const bool mark = static_cast<unsigned char>(c) == 0xCC && at + 1 < end;
            if (!mark || letters.count == 0) break;
            at += 2;
            continue;
        }
        if (length == 2) {
            letters.add_two(static_cast<unsigned char>(c),
                            static_cast<unsigned char>(text[at + 1]));
        } else {
            for (std::size_t i = 0; i < length; ++i)
                letters.put(static_cast<unsigned char>(text[at + i]));
            letters.letter(false, false);
        }
        at += length;
    }
    return at;
}

constexpr bool ends_sentence(Shape shape) noexcept {
    return shape == Shape::line || shape == Shape{'.'} || shape == Shape{'!'} ||
           shape == Shape{'?'} || shape == Shape{':'} || shape == Shape{'>'};
}

/// The end of the well-formed code point, or of the byte, at `at`.
std::size_t code_point_end(std::string_view text, std::size_t at) noexcept {
    ++at;
    while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U)
        ++at;
    return at;
}

class Splitter {
public:
    Splitter(std::string_view text, std::vector<Word>& words) : text_(text), words_(words) {}

    void run(const std::vector<Finding>& found) {
        std::size_t at = 0;
        for (const Finding& finding : found) {
            plain(at, finding.begin);
            const auto shape =
                static_cast<std::uint16_t>(Shape::found) + static_cast<std::uint16_t>(finding.kind);
            sign(finding.begin, finding.end, static_cast<Shape>(shape));
            at = finding.end;
        }
        plain(at, text_.size());
    }

private:
    void plain(std::size_t at, std::size_t end) {
        while (at < end) {
            const char c = text_[at];
            const bool starts = is_alnum(c) || (!is_ascii(c) && foreign_letter_at(text_, at) > 0);
            if (starts) {
                Letters letters;
                const std::size_t next = read_letters(text_, at, end, letters);
                describe(append(at, next), letters);
                at = next;
            } else if (const std::size_t blank = blank_at(text_, at)) {
                at += blank;
            } else {
                const std::size_t next =
                    is_ascii(c) ? at + 1 : std::min(end, code_point_end(text_, at));
                const auto byte = static_cast<unsigned char>(c);
                if (c != '\r') sign(at, next, static_cast<Shape>(byte));
                at = next;
            }
        }
    }

    void sign(std::size_t begin, std::size_t end, Shape shape) {
        // Empty lines are one line break.
        if (shape == Shape::line && !words_.empty() && words_.back().shape == Shape::line) {
            words_.back().end = static_cast<std::uint32_t>(end);
            return;
        }
        Word& word = append(begin, end);
        word.shape = shape;
        word.hash = hash_seed + static_cast<std::uint64_t>(shape) * hash_prime;
        word.prefix = word.suffix_2 = word.suffix_3 = word.suffix_4 = 0;
    }

    Word& append(std::size_t begin, std::size_t end) {
        const bool first = words_.empty() || ends_sentence(words_.back().shape);
        Word& word = words_.emplace_back();
        word.begin = static_cast<std::uint32_t>(begin);
        word.end = static_cast<std::uint32_t>(end);
        word.first = first;
        return word;
    }

    std::string_view text_;
    std::vector<Word>& words_;
};

}  // namespace

void split_words(std::string_view text, const std::vector<Finding>& found,
                 std::vector<Word>& words) {
    words.clear();
    Splitter(text, words).run(found);
}

std::uint64_t word_hash(std::string_view word) noexcept {
    Letters letters;
    read_letters(word, 0, word.size(), letters);
    return hash_of(letters.text());
}

}  // namespace molly::annotate
