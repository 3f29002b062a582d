#include "train/internal/pretokens.h"

#include <cstdint>
#include <vector>

#include <unicode-data.h>

namespace molly::train {
namespace {

constexpr unsigned letter = 1;
constexpr unsigned number = 2;
constexpr unsigned space = 4;
constexpr unsigned line_end = 8;
constexpr unsigned end_of_text = 16;

/// Classes of every code point, from llama.cpp's table (bits 1 and 2 of its flags: \p{N}, \p{L}).
const std::vector<std::uint8_t>& class_table() {
    static const std::vector<std::uint8_t> table = [] {
        std::vector<std::uint8_t> made(0x110000, 0);
        for (std::size_t i = 0; i + 1 < unicode_ranges_flags.size(); ++i) {
            const auto flags = unicode_ranges_flags.begin()[i].second;
            const std::uint32_t to = unicode_ranges_flags.begin()[i + 1].first;
            const unsigned kind =
                ((flags & 4U) != 0 ? letter : 0U) | ((flags & 2U) != 0 ? number : 0U);
            for (std::uint32_t c = unicode_ranges_flags.begin()[i].first; c < to; ++c)
                made[c] = static_cast<std::uint8_t>(kind);
        }
        for (const std::uint32_t c : unicode_set_whitespace)
            made[c] |= space;
        made['\r'] |= line_end;
        made['\n'] |= line_end;
        return made;
    }();
    return table;
}

struct Character {
    std::size_t at;  ///< byte in the text
    std::uint32_t code;
    std::uint8_t kind;
};

std::vector<Character> read_characters(std::string_view text) {
    std::vector<Character> out;
    out.reserve(text.size() + 2);
    const auto& classes = class_table();
    for (std::size_t i = 0; i < text.size();) {
        const auto lead = static_cast<unsigned char>(text[i]);
        const std::size_t bytes = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
        std::uint32_t code = bytes == 1 ? lead : lead & (0xFFU >> (bytes + 1));
        for (std::size_t k = 1; k < bytes && i + k < text.size(); ++k)
            code = (code << 6U) | (static_cast<unsigned char>(text[i + k]) & 0x3FU);
        out.push_back({i, code, code < classes.size() ? classes[code] : std::uint8_t{0}});
        i += bytes;
    }
    for (int i = 0; i < 2; ++i)
        out.push_back({text.size(), 0, static_cast<std::uint8_t>(end_of_text)});
    return out;
}

std::uint32_t lower(std::uint32_t code) {
    return code >= 'A' && code <= 'Z' ? code + 32 : code;
}

class Splitter {
public:
    explicit Splitter(std::string_view text) : all_(read_characters(text)) {}

    bool done() const { return kind(here_) == end_of_text; }
    std::size_t begin() const { return all_[here_].at; }
    /// Moves behind the next word and gives the byte where it ends.
    std::size_t next() {
        here_ += length();
        return begin();
    }

private:
    std::uint8_t kind(std::size_t i) const {
        return i < all_.size() ? all_[i].kind : static_cast<std::uint8_t>(end_of_text);
    }
    bool is(std::size_t i, unsigned kinds) const { return (kind(i) & kinds) != 0; }
    std::uint32_t code(std::size_t i) const { return i < all_.size() ? all_[i].code : 0; }
    std::size_t run(std::size_t from, unsigned kinds) const {
        std::size_t i = from;
        while (is(i, kinds))
            ++i;
        return i - from;
    }

    std::size_t length() const {
        const std::size_t at = here_;
        if (const std::size_t contracted = contraction(at); contracted > 0) return contracted;
        if (!is(at, line_end | number) && (is(at, letter) || is(at + 1, letter)))
            return 1 + run(at + 1, letter);
        if (is(at, number)) return 1;
        constexpr unsigned not_mark = space | letter | number | end_of_text;
        const std::size_t lead = code(at) == ' ' ? 1 : 0;
        if (!is(at + lead, not_mark)) {
            std::size_t end = at + lead;
            while (!is(end, not_mark))
                ++end;
            return end + run(end, line_end) - at;
        }
        return blank(at);
    }

    /// 's 't 're 've 'm 'll 'd, in any case.
    std::size_t contraction(std::size_t at) const {
        if (code(at) != '\'' || is(at + 1, end_of_text)) return 0;
        const std::uint32_t a = lower(code(at + 1));
        if (a == 's' || a == 't' || a == 'm' || a == 'd') return 2;
        const std::uint32_t b = lower(code(at + 2));
        const bool two = (a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l');
        return two && !is(at + 2, end_of_text) ? 3 : 0;
    }

    std::size_t blank(std::size_t at) const {
        const std::size_t blanks = run(at, space);
        for (std::size_t i = blanks; i > 0; --i) {
            if (is(at + i - 1, line_end)) return i;
        }
        if (blanks > 1 && !is(at + blanks, end_of_text)) return blanks - 1;
        return blanks > 0 ? blanks : 1;
    }

    std::vector<Character> all_;
    std::size_t here_ = 0;
};

}  // namespace

void split_words(std::string_view text, const std::function<void(std::string_view)>& word) {
    Splitter splitter(text);
    while (!splitter.done()) {
        const std::size_t from = splitter.begin();
        word(text.substr(from, splitter.next() - from));
    }
}

}  // namespace molly::train
