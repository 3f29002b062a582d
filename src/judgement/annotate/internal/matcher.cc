#include "annotate/internal/matcher.h"

#include <utility>

#include <fmt/format.h>

#include "annotate/internal/escapes.h"
#include "annotate/internal/scan.h"

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

/// Calls `visit(begin, end)` for each match that is not empty.
template <class Visit>
void each_match(const RE2& pattern, std::string_view text, const Visit& visit) {
    const re2::StringPiece piece(text.data(), text.size());
    re2::StringPiece match;
    for (std::size_t at = 0; at <= text.size();) {
        if (!pattern.Match(piece, at, text.size(), RE2::UNANCHORED, &match, 1)) return;
        const auto begin = static_cast<std::size_t>(match.data() - text.data());
        const std::size_t end = begin + match.size();
        if (end > begin) visit(begin, end);
        at = end > begin ? end : end + 1;
    }
}

}  // namespace

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

void Matcher::match_form(std::string_view text, std::vector<bool>& found) const {
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

void Matcher::match(std::string_view text, std::vector<bool>& found) const {
    if (text.empty()) return;
    match_form(text, found);
    if (text.find('\\') != std::string_view::npos) match_form(without_escapes(text), found);
}

void Matcher::locate(std::string_view text, std::size_t rule,
                     std::vector<domain::Finding>& out) const {
    const bool escaped = text.find('\\') != std::string_view::npos;
    const Unescaped unescaped = escaped ? unescape(text) : Unescaped{};
    for (std::size_t i = 0; i < owners_.size(); ++i) {
        if (owners_[i] != rule) continue;
        each_match(*single_[i], text, [&](std::size_t begin, std::size_t end) {
            out.push_back(found(domain::FindingKind::declared, begin, end));
        });
        if (!escaped) continue;
        each_match(*single_[i], unescaped.text, [&](std::size_t begin, std::size_t end) {
            out.push_back(in_origin(unescaped, found(domain::FindingKind::declared, begin, end)));
        });
    }
}

}  // namespace molly::annotate
