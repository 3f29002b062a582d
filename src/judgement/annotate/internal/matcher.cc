#include "annotate/internal/matcher.h"

#include <array>
#include <utility>

#include <fmt/format.h>

namespace molly::annotate {
namespace {

constexpr std::int64_t memory_max = 64 << 20;  // bytes, for the automaton of all rules together

RE2::Options set_options() {
    RE2::Options options(RE2::Quiet);
    options.set_max_mem(memory_max);
    return options;
}

/// A phrase as a pattern: letters of either case, and any white space where it has a space, because
/// a line break or a no-break space must not hide it.
std::string phrase_pattern(std::string_view phrase) {
    std::string pattern = "(?i)";
    std::string word;
    const auto flush = [&] {
        pattern += RE2::QuoteMeta(word);
        word.clear();
    };
    bool space = false;
    for (const char c : phrase) {
        const bool blank = c == ' ' || c == '\t' || c == '\n' || c == '\r';
        if (!blank) {
            word += c;
        } else if (!space) {
            flush();
            pattern += "[\\s\\x{00A0}]+";
        }
        space = blank;
    }
    flush();
    return pattern;
}

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

}  // namespace

std::string without_escapes(std::string_view text) {
    static constexpr std::string_view letters = "nrtbf";
    static constexpr std::string_view meanings = "\n\r\t\b\f";
    std::string out;
    out.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '\\' || i + 1 == text.size()) {
            out += text[i];
            continue;
        }
        const char escape = text[++i];
        const std::size_t letter = letters.find(escape);
        if (letter != std::string_view::npos) {
            out += meanings[letter];
        } else if (escape == 'u') {
            const std::size_t used = append_unicode_escape(out, text, i + 1);
            if (used == 0) out += escape;
            i += used;
        } else {
            out += escape;
        }
    }
    return out;
}

Matcher::Matcher() : set_(set_options(), RE2::UNANCHORED) {}

Result<void> Matcher::add(const std::string& pattern, std::size_t rule, const std::string& path) {
    auto single = std::make_unique<RE2>(pattern, set_options());
    std::string error = single->ok() ? "" : single->error();
    if (error.empty() && set_.Add(pattern, &error) >= 0) {
        single_.push_back(std::move(single));
        owners_.push_back(rule);
        return {};
    }
    return fail(Error(ErrorCode::invalid_request,
                      fmt::format("{}: the pattern does not compile (RE2 syntax): {}", path, error))
                    .param(path));
}

Result<std::unique_ptr<Matcher>> Matcher::make(const std::vector<LabelRule>& rules) {
    std::unique_ptr<Matcher> matcher(new Matcher());
    for (std::size_t i = 0; i < rules.size(); ++i) {
        for (std::size_t k = 0; k < rules[i].phrases.size(); ++k) {
            const std::string& phrase = rules[i].phrases[k];
            const std::string path = fmt::format("rules[{}].phrases[{}]", i, k);
            if (phrase.find_first_not_of(" \t\r\n") == std::string::npos) {
                return fail(Error(ErrorCode::invalid_request,
                                  fmt::format("{}: an empty phrase would match everything", path))
                                .param(path));
            }
            TRY_DO(matcher->add(phrase_pattern(phrase), i, path));
        }
        for (std::size_t k = 0; k < rules[i].patterns.size(); ++k) {
            TRY_DO(
                matcher->add(rules[i].patterns[k], i, fmt::format("rules[{}].patterns[{}]", i, k)));
        }
    }
    if (!matcher->owners_.empty() && !matcher->set_.Compile()) {
        return fail(ErrorCode::exhausted,
                    "the label rules together need too much memory; simplify the patterns");
    }
    return matcher;
}

void Matcher::match(std::string_view text, std::vector<bool>& found) const {
    std::vector<int> hits;
    RE2::Set::ErrorInfo error{RE2::Set::kNoError};
    const re2::StringPiece piece(text.data(), text.size());
    if (set_.Match(piece, &hits, &error)) {
        for (const int hit : hits)
            found[owners_[static_cast<std::size_t>(hit)]] = true;
        return;
    }
    if (error.kind == RE2::Set::kNoError) return;
    // The automaton ran out of memory on this text: a rule must not fail open, so ask one by one.
    for (std::size_t i = 0; i < single_.size(); ++i) {
        if (RE2::PartialMatch(piece, *single_[i])) found[owners_[i]] = true;
    }
}

void Matcher::count(std::string_view text, std::vector<std::uint32_t>& counts) const {
    if (text.empty()) return;
    std::vector<bool> found(counts.size(), false);
    match(text, found);
    if (text.find('\\') != std::string_view::npos) match(without_escapes(text), found);
    for (std::size_t i = 0; i < counts.size(); ++i)
        counts[i] += found[i] ? 1U : 0U;
}

}  // namespace molly::annotate
