#pragma once
// Puts a Grammar together: names, character sets as UTF-8 bytes, repetitions, and the checks at the
// end. Used by the parser only.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/internal/grammar.h"

namespace molly::engine {

using GrammarSequence = std::vector<GrammarElement>;

/// Inclusive ranges of code points.
using CodePointRanges = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

class GrammarBuilder {
public:
    explicit GrammarBuilder(const GrammarLimits& limits) : limits_(limits) {}

    /// The rule of this name, declared by its first mention.
    std::uint32_t rule(std::string_view name);
    bool defined(std::uint32_t rule) const { return defined_[rule]; }
    /// Errors: invalid_request, when the grammar has grown too large; the same for the others.
    Result<void> define(std::uint32_t rule, std::vector<GrammarSequence> bodies);
    Result<GrammarElement> anonymous(std::vector<GrammarSequence> bodies);
    /// One code point out of the ranges (or out of all others).
    Result<GrammarElement> code_point(CodePointRanges ranges, bool negated);
    GrammarElement byte(std::uint8_t value);
    /// `item` from `least` to `most` times; no most: without end.
    Result<GrammarSequence> repeat(GrammarElement item, std::size_t least,
                                   std::optional<std::size_t> most);
    /// Errors: invalid_request (no root, a missing rule, recursion to the left).
    Result<Grammar> finish();

private:
    /// A rule that another may begin with; `last`: nothing follows it there.
    struct Begin {
        std::uint32_t rule;
        bool last;
    };

    GrammarElement byte_set(const Grammar::ByteSet& set);
    std::vector<bool> find_empty_rules() const;
    std::vector<std::vector<Begin>> find_begins() const;
    static std::vector<std::uint32_t> find_groups(const std::vector<std::vector<Begin>>& begins);
    Result<void> check_recursion() const;

    GrammarLimits limits_;
    Grammar grammar_;
    std::vector<bool> defined_;
    std::map<std::string, std::uint32_t, std::less<>> names_;
    std::map<std::string, std::uint32_t, std::less<>> set_ids_;
    std::map<CodePointRanges, GrammarElement> code_points_;
};

}  // namespace molly::engine
