#pragma once
// A grammar in GBNF (llama.cpp's notation), checked and compiled to bytes. llama.cpp's own grammar
// code neither bounds its work nor checks recursion through empty rules, and it prints grammars
// that do not parse; so nothing of it is used. Pure; a Grammar is read from any thread.
#include <bitset>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace molly::engine {

/// One place in the body of a rule.
struct GrammarElement {
    enum class Kind : std::uint8_t {
        end,        ///< the body is over
        bytes,      ///< one byte out of a set; value: its index
        rule,       ///< value: the rule
        token,      ///< exactly this token; value: its id
        not_token,  ///< any token but this one
    };
    Kind kind = Kind::end;
    std::uint32_t value = 0;

    bool operator==(const GrammarElement&) const = default;
};

struct GrammarLimits {
    std::size_t bytes_max = 512U << 10U;   ///< of the text
    std::size_t elements_max = 300'000;    ///< after repetitions are spelled out
    std::size_t repetitions_max = 10'000;  ///< a number in braces
    std::size_t depth_max = 128;           ///< nested parentheses
};

class Grammar {
public:
    /// Finds the token that `<name>` stands for, angle brackets included.
    using TokenLookup = std::function<std::optional<std::uint32_t>(std::string_view)>;
    using ByteSet = std::bitset<256>;

    /// Errors: invalid_request, with the offset of what is wrong: syntax, a rule that is missing,
    /// recursion to the left (also through rules that may be empty), or sizes beyond the limits.
    static Result<Grammar> parse(std::string_view gbnf, const TokenLookup& tokens = {},
                                 const GrammarLimits& limits = {});
    /// What either grammar accepts.
    static Grammar either(const Grammar& one, const Grammar& other);
    /// `opening`, then what the grammar accepts.
    static Grammar after(std::string_view opening, const Grammar& grammar);

    std::uint32_t root() const noexcept { return root_; }
    GrammarElement element(std::uint32_t at) const { return elements_[at]; }
    /// Where the bodies of a rule start; each runs to its `end`.
    std::span<const std::uint32_t> bodies(std::uint32_t rule) const { return rules_[rule]; }
    const ByteSet& bytes(std::uint32_t set) const { return sets_[set]; }
    std::size_t rules() const noexcept { return rules_.size(); }

private:
    void add_root(std::vector<std::vector<GrammarElement>> bodies);

    friend class GrammarBuilder;
    std::vector<GrammarElement> elements_;
    std::vector<std::vector<std::uint32_t>> rules_;
    std::vector<ByteSet> sets_;
    std::uint32_t root_ = 0;
};

}  // namespace molly::engine
