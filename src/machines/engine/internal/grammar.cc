#include "engine/internal/grammar.h"

#include <charconv>
#include <string>

#include <fmt/format.h>

#include "base/utf8.h"
#include "engine/internal/grammar_builder.h"

namespace molly::engine {
namespace {

using Kind = GrammarElement::Kind;

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

bool is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '-' || c == '_';
}

class Parser {
public:
    Parser(std::string_view text, const Grammar::TokenLookup& tokens, const GrammarLimits& limits)
        : text_(text), tokens_(tokens), limits_(limits), builder_(limits) {}

    Result<Grammar> parse() {
        skip_space(true);
        while (!at_end()) {
            TRY_DO(parse_rule());
            skip_space(true);
        }
        return builder_.finish();
    }

private:
    bool at_end() const { return at_ >= text_.size(); }
    char peek(std::size_t ahead = 0) const {
        return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
    }
    bool take(std::string_view wanted) {
        if (!text_.substr(at_).starts_with(wanted)) return false;
        at_ += wanted.size();
        return true;
    }
    std::unexpected<Error> wrong(std::string_view what) const {
        return fail(Error(ErrorCode::invalid_request,
                          fmt::format("the grammar does not parse at byte {}: {}", at_, what))
                        .italian(fmt::format("la grammatica non è valida al byte {}", at_)));
    }

    void skip_space(bool lines) {
        while (!at_end()) {
            const char c = peek();
            if (c == '#') {
                while (!at_end() && peek() != '\n' && peek() != '\r')
                    ++at_;
            } else if (c == ' ' || c == '\t' || (lines && (c == '\n' || c == '\r'))) {
                ++at_;
            } else {
                return;
            }
        }
    }

    std::string_view take_name() {
        const std::size_t start = at_;
        while (is_name(peek()))
            ++at_;
        return text_.substr(start, at_ - start);
    }

    Result<void> parse_rule() {
        const std::string_view name = take_name();
        if (name.empty()) return wrong("a rule's name is missing");
        skip_space(false);
        if (!take("::=")) return wrong("::= is missing");
        skip_space(true);
        const std::uint32_t rule = builder_.rule(name);
        if (builder_.defined(rule)) return wrong("a rule is defined twice");
        TRY(auto bodies, parse_bodies(0));
        TRY_DO(builder_.define(rule, std::move(bodies)));
        if (!at_end() && peek() != '\n' && peek() != '\r') return wrong("the line should end here");
        return {};
    }

    Result<std::vector<GrammarSequence>> parse_bodies(std::size_t depth) {
        std::vector<GrammarSequence> bodies;
        for (;;) {
            TRY(auto body, parse_sequence(depth));
            bodies.push_back(std::move(body));
            if (!take("|")) return bodies;
            skip_space(true);
        }
    }

    Result<GrammarSequence> parse_sequence(std::size_t depth) {
        GrammarSequence sequence;
        while (starts_item()) {
            TRY(auto item, parse_item(depth));
            skip_space(depth > 0);
            TRY(item, parse_repetitions(std::move(item), depth));
            if (sequence.size() + item.size() > limits_.elements_max) {
                return wrong("the rule is too long");
            }
            sequence.insert(sequence.end(), item.begin(), item.end());
        }
        return sequence;
    }

    bool starts_item() const {
        const char c = peek();
        return c == '"' || c == '[' || c == '(' || c == '.' || c == '<' || c == '!' || is_name(c);
    }

    Result<GrammarSequence> parse_item(std::size_t depth) {
        const char c = peek();
        if (c == '"') return parse_literal();
        if (c == '[') return parse_set();
        if (c == '(') return parse_group(depth);
        if (c == '<' || c == '!') return parse_token();
        if (c == '.') {
            ++at_;
            TRY(const auto any, builder_.code_point({}, true));
            return GrammarSequence{any};
        }
        return GrammarSequence{{Kind::rule, builder_.rule(take_name())}};
    }

    Result<GrammarSequence> parse_group(std::size_t depth) {
        if (depth >= limits_.depth_max) return wrong("parentheses nest too deeply");
        ++at_;
        skip_space(true);
        TRY(auto bodies, parse_bodies(depth + 1));
        if (!take(")")) return wrong(") is missing");
        TRY(const auto group, builder_.anonymous(std::move(bodies)));
        return GrammarSequence{group};
    }

    Result<GrammarSequence> parse_literal() {
        ++at_;
        GrammarSequence sequence;
        while (peek() != '"') {
            TRY(const std::uint32_t code_point, parse_character());
            std::string bytes;
            append_utf8(bytes, code_point);
            for (const char byte : bytes)
                sequence.push_back(builder_.byte(static_cast<std::uint8_t>(byte)));
        }
        ++at_;
        return sequence;
    }

    static void append_utf8(std::string& out, std::uint32_t code_point) {
        const auto tail = [&](std::uint32_t shift) {
            out += static_cast<char>(0x80U | ((code_point >> shift) & 0x3FU));
        };
        if (code_point < 0x80) {
            out += static_cast<char>(code_point);
        } else if (code_point < 0x800) {
            out += static_cast<char>(0xC0U | (code_point >> 6U));
            tail(0);
        } else if (code_point < 0x10000) {
            out += static_cast<char>(0xE0U | (code_point >> 12U));
            tail(6);
            tail(0);
        } else {
            out += static_cast<char>(0xF0U | (code_point >> 18U));
            tail(12);
            tail(6);
            tail(0);
        }
    }

    Result<GrammarSequence> parse_set() {
        ++at_;
        const bool negated = take("^");
        CodePointRanges ranges;
        while (peek() != ']') {
            TRY(const std::uint32_t low, parse_character());
            std::uint32_t high = low;
            if (peek() == '-' && peek(1) != ']') {
                ++at_;
                TRY(high, parse_character());
            }
            if (high < low) return wrong("a range runs backwards");
            ranges.emplace_back(low, high);
        }
        ++at_;
        TRY(const auto element, builder_.code_point(std::move(ranges), negated));
        return GrammarSequence{element};
    }

    Result<std::uint32_t> parse_character() {
        if (at_end()) return wrong("the grammar ends too early");
        if (peek() == '\\') return parse_escape();
        const std::size_t length = utf8_length(text_.substr(at_));
        if (length == 0) return wrong("the text is not UTF-8");
        std::uint32_t code_point = static_cast<std::uint8_t>(peek());
        if (length > 1) code_point &= 0x7FU >> length;
        for (std::size_t i = 1; i < length; ++i)
            code_point = (code_point << 6U) | (static_cast<std::uint8_t>(peek(i)) & 0x3FU);
        at_ += length;
        return code_point;
    }

    Result<std::uint32_t> parse_escape() {
        const char kind = peek(1);
        at_ += 2;
        switch (kind) {
            case 'x':
                return parse_hex(2);
            case 'u':
                return parse_hex(4);
            case 'U':
                return parse_hex(8);
            case 't':
                return std::uint32_t{'\t'};
            case 'r':
                return std::uint32_t{'\r'};
            case 'n':
                return std::uint32_t{'\n'};
            case '\\':
            case '"':
            case '[':
            case ']':
            case '^':
            case '-':
                return static_cast<std::uint32_t>(kind);
            default:
                at_ -= 2;
                return wrong("an unknown escape");
        }
    }

    Result<std::uint32_t> parse_hex(std::size_t digits) {
        std::uint32_t value = 0;
        const std::string_view part = text_.substr(at_, digits);
        const auto [end, error] =
            std::from_chars(part.data(), part.data() + part.size(), value, 16);
        if (part.size() != digits || error != std::errc() || end != part.data() + digits) {
            return wrong("hexadecimal digits are missing");
        }
        if (value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) {
            return wrong("no such code point");
        }
        at_ += digits;
        return value;
    }

    Result<GrammarSequence> parse_token() {
        const bool negated = take("!");
        const std::size_t close = text_.find('>', at_);
        if (peek() != '<' || close == std::string_view::npos) return wrong("<token> is missing");
        const std::string_view name = text_.substr(at_, close + 1 - at_);
        std::optional<std::uint32_t> token;
        if (name.starts_with("<[") && name.ends_with("]>")) {
            std::uint32_t id = 0;
            const auto [end, error] =
                std::from_chars(name.data() + 2, name.data() + name.size() - 2, id);
            if (error == std::errc() && end == name.data() + name.size() - 2) token = id;
        } else if (tokens_) {
            token = tokens_(name);
        }
        if (!token) return wrong("the model has no such token");
        at_ = close + 1;
        return GrammarSequence{{negated ? Kind::not_token : Kind::token, *token}};
    }

    Result<GrammarSequence> parse_repetitions(GrammarSequence item, std::size_t depth) {
        for (;;) {
            const char c = peek();
            if (c != '*' && c != '+' && c != '?' && c != '{') return item;
            if (item.empty()) return wrong("there is nothing to repeat");
            std::size_t least = c == '+' ? 1 : 0;
            std::optional<std::size_t> most;
            if (c == '?') most = 1;
            ++at_;
            if (c == '{') TRY_DO(parse_count(least, most));
            skip_space(depth > 0);
            GrammarElement one = item.front();
            if (item.size() > 1) {
                TRY(one, builder_.anonymous({std::move(item)}));
            }
            TRY(item, builder_.repeat(one, least, most));
            if (item.empty()) return item;  // {0}
        }
    }

    Result<void> parse_count(std::size_t& least, std::optional<std::size_t>& most) {
        skip_space(true);
        TRY(least, parse_number());
        skip_space(true);
        most = least;
        if (take(",")) {
            skip_space(true);
            most.reset();
            if (is_digit(peek())) {
                TRY(most, parse_number());
            }
            skip_space(true);
        }
        if (!take("}")) return wrong("} is missing");
        if (most && *most < least) return wrong("a repetition runs backwards");
        return {};
    }

    Result<std::size_t> parse_number() {
        std::size_t value = 0;
        const char* const start = text_.data() + at_;
        const auto [end, error] = std::from_chars(start, text_.data() + text_.size(), value);
        if (end == start) return wrong("a number is missing");
        if (error != std::errc()) return wrong("the number is too large");
        at_ += static_cast<std::size_t>(end - start);
        return value;
    }

    std::string_view text_;
    const Grammar::TokenLookup& tokens_;
    const GrammarLimits& limits_;
    GrammarBuilder builder_;
    std::size_t at_ = 0;
};

}  // namespace

Result<Grammar> Grammar::parse(std::string_view gbnf, const TokenLookup& tokens,
                               const GrammarLimits& limits) {
    if (gbnf.size() > limits.bytes_max) {
        return fail(ErrorCode::invalid_request, fmt::format("the grammar has {} bytes; at most {}",
                                                            gbnf.size(), limits.bytes_max));
    }
    return Parser(gbnf, tokens, limits).parse();
}

Grammar Grammar::either(const Grammar& one, const Grammar& other) {
    Grammar both = one;
    const auto elements = static_cast<std::uint32_t>(both.elements_.size());
    const auto rules = static_cast<std::uint32_t>(both.rules_.size());
    const auto sets = static_cast<std::uint32_t>(both.sets_.size());
    for (GrammarElement element : other.elements_) {
        if (element.kind == Kind::rule) element.value += rules;
        if (element.kind == Kind::bytes) element.value += sets;
        both.elements_.push_back(element);
    }
    for (auto bodies : other.rules_) {
        for (std::uint32_t& start : bodies)
            start += elements;
        both.rules_.push_back(std::move(bodies));
    }
    both.sets_.insert(both.sets_.end(), other.sets_.begin(), other.sets_.end());
    both.add_root({{{Kind::rule, one.root_}}, {{Kind::rule, other.root_ + rules}}});
    return both;
}

Grammar Grammar::after(std::string_view opening, const Grammar& grammar) {
    Grammar result = grammar;
    GrammarSequence body;
    for (const char byte : opening) {
        ByteSet set;
        set.set(static_cast<std::uint8_t>(byte));
        body.push_back({Kind::bytes, static_cast<std::uint32_t>(result.sets_.size())});
        result.sets_.push_back(set);
    }
    body.push_back({Kind::rule, grammar.root_});
    result.add_root({std::move(body)});
    return result;
}

void Grammar::add_root(std::vector<std::vector<GrammarElement>> bodies) {
    root_ = static_cast<std::uint32_t>(rules_.size());
    rules_.emplace_back();
    for (const auto& body : bodies) {
        rules_.back().push_back(static_cast<std::uint32_t>(elements_.size()));
        elements_.insert(elements_.end(), body.begin(), body.end());
        elements_.push_back({Kind::end, 0});
    }
}

}  // namespace molly::engine
