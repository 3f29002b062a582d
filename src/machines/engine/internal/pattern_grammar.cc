#include "engine/internal/pattern_grammar.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include <fmt/format.h>

#include "base/utf8.h"

namespace molly::engine {
namespace {

constexpr std::uint32_t code_point_max = 0x10FFFF;
constexpr std::size_t pattern_bytes_max = 4'096;
constexpr std::size_t depth_max = 64;
constexpr std::uint32_t repetitions_max = 2'000;

const CharacterRanges digits = {{'0', '9'}};
const CharacterRanges word = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
const CharacterRanges blanks = {{'\t', '\t'}, {'\n', '\n'}, {'\r', '\r'}, {' ', ' '}};
// What the negated classes mean differs between validators outside ASCII, so they stay inside.
const CharacterRanges no_digits = {{' ', '/'}, {':', '~'}};
const CharacterRanges no_word = {{' ', '/'}, {':', '@'}, {'[', '^'}, {'`', '`'}, {'{', '~'}};
const CharacterRanges no_blanks = {{'!', '~'}};
const CharacterRanges line_ends = {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};

CharacterRanges complement(CharacterRanges ranges) {
    std::ranges::sort(ranges);
    CharacterRanges others;
    std::uint32_t next = 0;
    for (const auto& [low, high] : ranges) {
        if (low > next) others.emplace_back(next, low - 1);
        next = std::max(next, high + 1);
    }
    if (next <= code_point_max) others.emplace_back(next, code_point_max);
    return others;
}

std::string escaped(std::uint32_t code_point) {
    return fmt::format("\\U{:08X}", code_point);
}

class Parser {
public:
    explicit Parser(std::string_view text) : text_(text) {}

    Result<std::string> parse() {
        // Unanchored patterns match anywhere; a text that is the match alone satisfies them too.
        const bool starts = take('^');
        const bool ends = strip_end_anchor();
        const std::size_t start = at_;
        TRY(auto expression, parse_choice(0));
        if (at_ < text_.size()) return wrong("an unbalanced parenthesis");
        if ((starts || ends) && choices_at_top_ > 1) {
            at_ = start;
            return wrong("anchors beside alternatives; put the alternatives into a group");
        }
        return expression;
    }

private:
    char peek(std::size_t ahead = 0) const {
        return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
    }
    bool take(char wanted) {
        if (peek() != wanted || at_ >= text_.size()) return false;
        ++at_;
        return true;
    }
    bool take(std::string_view wanted) {
        if (!text_.substr(at_).starts_with(wanted)) return false;
        at_ += wanted.size();
        return true;
    }
    std::unexpected<Error> wrong(std::string_view what) const {
        return fail(ErrorCode::invalid_request,
                    fmt::format("the pattern cannot be kept at byte {}: {}", at_, what));
    }

    bool strip_end_anchor() {
        if (!text_.ends_with('$')) return false;
        std::size_t slashes = 0;
        while (slashes + 1 < text_.size() && text_[text_.size() - 2 - slashes] == '\\')
            ++slashes;
        if (slashes % 2 == 1) return false;  // an escaped dollar
        text_.remove_suffix(1);
        return true;
    }

    Result<std::string> parse_choice(std::size_t depth) {
        if (depth > depth_max) return wrong("too many nested groups");
        std::string out;
        std::size_t choices = 0;
        do {
            TRY(const auto sequence, parse_sequence(depth));
            out += (choices++ == 0 ? "" : " | ") + (sequence.empty() ? "\"\"" : sequence);
        } while (take('|'));
        if (depth == 0) choices_at_top_ = choices;
        return out;
    }

    Result<std::string> parse_sequence(std::size_t depth) {
        std::string out;
        while (at_ < text_.size() && peek() != '|' && peek() != ')') {
            TRY(const auto atom, parse_atom(depth));
            TRY(const auto counted, parse_count(atom));
            out += (out.empty() ? "" : " ") + counted;
        }
        return out;
    }

    Result<std::string> parse_atom(std::size_t depth) {
        switch (peek()) {
            case '(':
                return parse_group(depth);
            case '[':
                return parse_class();
            case '.':
                ++at_;
                return json_character(complement(line_ends));
            case '^':
            case '$':
                return wrong("an anchor inside the pattern");
            case '*':
            case '+':
            case '?':
                return wrong("nothing to repeat");
            default:
                break;
        }
        TRY(const auto ranges, parse_character(false));
        std::string one = json_character(ranges);
        if (one.empty()) return wrong("a character that JSON cannot hold");
        return one;
    }

    Result<std::string> parse_group(std::size_t depth) {
        ++at_;
        if (take('?')) {
            const bool named = take("P<") || (peek() == '<' && peek(1) != '=' && peek(1) != '!');
            if (named) {
                const std::size_t close = text_.find('>', at_);
                if (close == std::string_view::npos) return wrong("a group's name without an end");
                at_ = close + 1;
            } else if (!take(':')) {
                return wrong("look-around or inline flags");
            }
        }
        TRY(auto inner, parse_choice(depth + 1));
        if (!take(')')) return wrong("an unbalanced parenthesis");
        return "( " + inner + " )";
    }

    Result<std::string> parse_class() {
        ++at_;
        const bool negated = take('^');
        CharacterRanges ranges;
        while (peek() != ']') {
            if (at_ >= text_.size()) return wrong("a character class without an end");
            TRY(auto low, parse_character(true));
            const bool single = low.size() == 1 && low[0].first == low[0].second;
            if (single && peek() == '-' && peek(1) != ']' && at_ + 1 < text_.size()) {
                ++at_;
                TRY(const auto high, parse_character(true));
                if (high.size() != 1 || high[0].first != high[0].second ||
                    high[0].first < low[0].first) {
                    return wrong("a range that runs backwards");
                }
                low[0].second = high[0].first;
            }
            ranges.insert(ranges.end(), low.begin(), low.end());
        }
        ++at_;
        std::string one = json_character(negated ? complement(ranges) : ranges);
        if (one.empty()) return wrong("a class without a character that JSON can hold");
        return one;
    }

    Result<CharacterRanges> parse_character(bool in_class) {
        if (peek() == '\\') return parse_escape(in_class);
        const std::size_t length = utf8_length(text_.substr(at_));
        if (length == 0) return wrong("text that is not UTF-8");
        std::uint32_t code_point = static_cast<std::uint8_t>(peek());
        if (length > 1) code_point &= 0x7FU >> length;
        for (std::size_t i = 1; i < length; ++i)
            code_point = (code_point << 6U) | (static_cast<std::uint8_t>(peek(i)) & 0x3FU);
        at_ += length;
        return CharacterRanges{{code_point, code_point}};
    }

    Result<CharacterRanges> parse_escape(bool in_class) {
        const char kind = peek(1);
        at_ += 2;
        const auto one = [](std::uint32_t code_point) {
            return CharacterRanges{{code_point, code_point}};
        };
        switch (kind) {
            case 'd':
                return digits;
            case 'D':
                return no_digits;
            case 'w':
                return word;
            case 'W':
                return no_word;
            case 's':
                return blanks;
            case 'S':
                return no_blanks;
            case 't':
                return one('\t');
            case 'n':
                return one('\n');
            case 'r':
                return one('\r');
            case 'f':
                return one('\f');
            case 'v':
                return one('\v');
            case 'x':
                return parse_hex(2);
            case 'u':
                return parse_hex(4);
            case 'b':
                if (in_class) return one('\b');
                break;
            default:
                break;
        }
        const bool plain =
            kind != '\0' && !((kind >= '0' && kind <= '9') || (kind >= 'a' && kind <= 'z') ||
                              (kind >= 'A' && kind <= 'Z'));
        if (plain && static_cast<std::uint8_t>(kind) < 0x80) {
            return one(static_cast<std::uint8_t>(kind));
        }
        at_ -= 2;
        return wrong("an escape that has no meaning here");
    }

    Result<CharacterRanges> parse_hex(std::size_t count) {
        const std::string_view part = text_.substr(at_, count);
        std::uint32_t value = 0;
        const auto [end, error] =
            std::from_chars(part.data(), part.data() + part.size(), value, 16);
        if (part.size() != count || error != std::errc() || end != part.data() + count) {
            return wrong("hexadecimal digits are missing");
        }
        at_ += count;
        return CharacterRanges{{value, value}};
    }

    Result<std::string> parse_count(const std::string& atom) {
        std::string count;
        if (take('*')) {
            count = "*";
        } else if (take('+')) {
            count = "+";
        } else if (take('?')) {
            count = "?";
        } else if (peek() == '{' && peek(1) >= '0' && peek(1) <= '9') {
            ++at_;
            TRY(count, parse_braces());
        } else {
            return atom;
        }
        take('?');  // lazy or greedy: the same texts match
        if (peek() == '*' || peek() == '+') return wrong("a repetition of a repetition");
        return atom + count;
    }

    Result<std::string> parse_braces() {
        TRY(const std::uint32_t least, parse_number());
        std::string count = fmt::format("{{{}", least);
        if (take(',')) {
            count += ',';
            if (peek() != '}') {
                TRY(const std::uint32_t most, parse_number());
                if (most < least) return wrong("a repetition that runs backwards");
                count += std::to_string(most);
            }
        }
        if (!take('}')) return wrong("a repetition without an end");
        return count + "}";
    }

    Result<std::uint32_t> parse_number() {
        std::uint32_t value = 0;
        const char* const start = text_.data() + at_;
        const auto [end, error] = std::from_chars(start, text_.data() + text_.size(), value);
        if (end == start || error != std::errc() || value > repetitions_max) {
            return wrong(fmt::format("a count that is no number up to {}", repetitions_max));
        }
        at_ += static_cast<std::size_t>(end - start);
        return value;
    }

    std::string_view text_;
    std::size_t at_ = 0;
    std::size_t choices_at_top_ = 0;
};

}  // namespace

std::string json_character(const CharacterRanges& ranges) {
    std::string raw;
    std::string out;
    const auto add = [&](std::string_view choice) {
        out += (out.empty() ? "" : " | ") + std::string(choice);
    };
    const auto contains = [&](std::uint32_t wanted) {
        return std::ranges::any_of(ranges, [wanted](const auto& range) {
            return range.first <= wanted && wanted <= range.second;
        });
    };
    for (auto [low, high] : ranges) {
        low = std::max(low, 0x20U);
        // Split around the quote and the backslash, which only stand escaped.
        for (const std::uint32_t gap : {std::uint32_t{'"'}, std::uint32_t{'\\'}}) {
            if (low <= gap && gap <= high) {
                if (low < gap) raw += escaped(low) + "-" + escaped(gap - 1);
                low = gap + 1;
            }
        }
        // The grammar's own escapes know no surrogates.
        if (low >= 0xD800 && low <= 0xDFFF) low = 0xE000;
        if (high >= 0xD800 && high <= 0xDFFF) high = 0xD7FF;
        if (low <= high && low <= code_point_max) raw += escaped(low) + "-" + escaped(high);
    }
    if (!raw.empty()) add("[" + raw + "]");
    if (contains('"')) add(R"("\\\"")");
    if (contains('\\')) add(R"("\\\\")");
    if (contains('\n')) add(R"("\\n")");
    if (contains('\r')) add(R"("\\r")");
    if (contains('\t')) add(R"("\\t")");
    if (contains('\b')) add(R"("\\b")");
    if (contains('\f')) add(R"("\\f")");
    return out.empty() ? out : "( " + out + " )";
}

Result<std::string> pattern_grammar(std::string_view pattern) {
    if (pattern.size() > pattern_bytes_max) {
        return fail(ErrorCode::invalid_request, fmt::format("a pattern has {} bytes; at most {}",
                                                            pattern.size(), pattern_bytes_max));
    }
    return Parser(pattern).parse();
}

}  // namespace molly::engine
