#include "engine/internal/grammar_builder.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace molly::engine {
namespace {

using Kind = GrammarElement::Kind;

constexpr std::uint32_t code_point_max = 0x10FFFF;

std::unexpected<Error> too_large() {
    return fail(Error(ErrorCode::invalid_request,
                      "the grammar or schema is too large; use fewer rules and smaller repetition "
                      "counts")
                    .italian("la grammatica o lo schema è troppo grande; usare meno regole e "
                             "ripetizioni più piccole"));
}

/// Sorted, merged, without surrogates, and complemented when `negated`.
CodePointRanges normalize(CodePointRanges ranges, bool negated) {
    std::ranges::sort(ranges);
    CodePointRanges merged;
    for (const auto& [low, high] : ranges) {
        if (!merged.empty() && low <= merged.back().second + 1) {
            merged.back().second = std::max(merged.back().second, high);
        } else {
            merged.emplace_back(low, high);
        }
    }
    if (negated) {
        CodePointRanges others;
        std::uint32_t next = 0;
        for (const auto& [low, high] : merged) {
            if (low > next) others.emplace_back(next, low - 1);
            next = high + 1;
        }
        if (next <= code_point_max) others.emplace_back(next, code_point_max);
        merged = std::move(others);
    }
    CodePointRanges valid;
    for (const auto& [low, high] : merged) {
        if (low < 0xD800) valid.emplace_back(low, std::min(high, 0xD7FFU));
        if (high > 0xDFFF && low <= code_point_max) {
            valid.emplace_back(std::max(low, 0xE000U), std::min(high, code_point_max));
        }
    }
    return valid;
}

std::size_t utf8_width(std::uint32_t code_point) {
    if (code_point < 0x80) return 1;
    if (code_point < 0x800) return 2;
    return code_point < 0x10000 ? 3 : 4;
}

using ByteRanges = std::vector<std::pair<std::uint8_t, std::uint8_t>>;

std::array<std::uint8_t, 4> encode(std::uint32_t code_point, std::size_t width) {
    std::array<std::uint8_t, 4> bytes{};
    constexpr std::array<std::uint8_t, 5> leads = {0, 0x00, 0xC0, 0xE0, 0xF0};
    for (std::size_t i = width; i-- > 1;) {
        bytes[i] = static_cast<std::uint8_t>(0x80U | (code_point & 0x3FU));
        code_point >>= 6U;
    }
    bytes[0] = static_cast<std::uint8_t>(leads[width] | code_point);
    return bytes;
}

/// Splits a range until each part is a product of byte ranges (the way of RE2).
void add_utf8(std::uint32_t low, std::uint32_t high, std::vector<ByteRanges>& out) {
    constexpr std::array<std::uint32_t, 3> last_of_width = {0x7F, 0x7FF, 0xFFFF};
    for (const std::uint32_t last : last_of_width) {
        if (low <= last && high > last) {
            add_utf8(low, last, out);
            add_utf8(last + 1, high, out);
            return;
        }
    }
    const std::size_t width = utf8_width(low);
    for (std::size_t i = 1; i < width; ++i) {
        const std::uint32_t mask = (1U << (6U * i)) - 1;
        if ((low & ~mask) == (high & ~mask)) continue;
        std::uint32_t middle = 0;  // the first code point of the second half
        if ((low & mask) != 0) {
            middle = (low | mask) + 1;
        } else if ((high & mask) != mask) {
            middle = high & ~mask;
        } else {
            continue;
        }
        add_utf8(low, middle - 1, out);
        add_utf8(middle, high, out);
        return;
    }
    const auto first = encode(low, width);
    const auto last = encode(high, width);
    ByteRanges ranges;
    for (std::size_t i = 0; i < width; ++i)
        ranges.emplace_back(first[i], last[i]);
    out.push_back(std::move(ranges));
}

}  // namespace

std::uint32_t GrammarBuilder::rule(std::string_view name) {
    const auto found = names_.find(name);
    if (found != names_.end()) return found->second;
    const auto id = static_cast<std::uint32_t>(grammar_.rules_.size());
    names_.emplace(name, id);
    grammar_.rules_.emplace_back();
    defined_.push_back(false);
    return id;
}

Result<void> GrammarBuilder::define(std::uint32_t rule, std::vector<GrammarSequence> bodies) {
    defined_[rule] = true;
    for (auto& body : bodies) {
        if (grammar_.elements_.size() + body.size() + 1 > limits_.elements_max) return too_large();
        grammar_.rules_[rule].push_back(static_cast<std::uint32_t>(grammar_.elements_.size()));
        grammar_.elements_.insert(grammar_.elements_.end(), body.begin(), body.end());
        grammar_.elements_.push_back({Kind::end, 0});
    }
    return {};
}

Result<GrammarElement> GrammarBuilder::anonymous(std::vector<GrammarSequence> bodies) {
    const auto id = static_cast<std::uint32_t>(grammar_.rules_.size());
    grammar_.rules_.emplace_back();
    defined_.push_back(true);
    TRY_DO(define(id, std::move(bodies)));
    return GrammarElement{Kind::rule, id};
}

GrammarElement GrammarBuilder::byte_set(const Grammar::ByteSet& set) {
    const auto next = static_cast<std::uint32_t>(grammar_.sets_.size());
    const auto [found, added] = set_ids_.emplace(set.to_string(), next);
    if (added) grammar_.sets_.push_back(set);
    return {Kind::bytes, found->second};
}

GrammarElement GrammarBuilder::byte(std::uint8_t value) {
    Grammar::ByteSet set;
    set.set(value);
    return byte_set(set);
}

Result<GrammarElement> GrammarBuilder::code_point(CodePointRanges ranges, bool negated) {
    ranges = normalize(std::move(ranges), negated);
    const auto known = code_points_.find(ranges);
    if (known != code_points_.end()) return known->second;
    std::vector<ByteRanges> products;
    for (const auto& [low, high] : ranges)
        add_utf8(low, high, products);
    Grammar::ByteSet single;
    std::vector<GrammarSequence> bodies;
    for (const auto& product : products) {
        GrammarSequence body;
        for (const auto& [low, high] : product) {
            Grammar::ByteSet set;
            for (std::size_t value = low; value <= high; ++value)
                set.set(value);
            if (product.size() == 1) single |= set;
            body.push_back(byte_set(set));
        }
        if (product.size() > 1) bodies.push_back(std::move(body));
    }
    GrammarElement element = byte_set(single);
    if (!bodies.empty()) {
        if (single.any()) bodies.push_back({element});
        TRY(element, anonymous(std::move(bodies)));
    }
    code_points_.emplace(std::move(ranges), element);
    return element;
}

Result<GrammarSequence> GrammarBuilder::repeat(GrammarElement item, std::size_t least,
                                               std::optional<std::size_t> most) {
    if (std::max(least, most.value_or(0)) > limits_.repetitions_max) return too_large();
    GrammarSequence sequence(least, item);
    if (!most) {
        // R ::= item R | nothing
        const auto id = static_cast<std::uint32_t>(grammar_.rules_.size());
        grammar_.rules_.emplace_back();
        defined_.push_back(true);
        TRY_DO(define(id, {{item, {Kind::rule, id}}, {}}));
        sequence.push_back({Kind::rule, id});
        return sequence;
    }
    // R1 ::= item | nothing; R2 ::= item R1 | nothing; ...
    std::optional<GrammarElement> rest;
    for (std::size_t i = least; i < *most; ++i) {
        GrammarSequence body = {item};
        if (rest) body.push_back(*rest);
        TRY(rest, anonymous({std::move(body), {}}));
    }
    if (rest) sequence.push_back(*rest);
    return sequence;
}

std::vector<bool> GrammarBuilder::find_empty_rules() const {
    // For each body, how many of its rules are not known to be empty; a body with anything else
    // never is. Each rule is looked at once, so the work is linear.
    std::vector<bool> empty(grammar_.rules_.size(), false);
    std::vector<std::vector<std::uint32_t>> mentions(grammar_.rules_.size());  // rule -> bodies
    std::vector<std::uint32_t> owners;
    std::vector<std::size_t> missing;
    std::vector<std::uint32_t> todo;
    const auto found_empty = [&](std::uint32_t rule) {
        if (empty[rule]) return;
        empty[rule] = true;
        todo.push_back(rule);
    };
    for (std::uint32_t rule = 0; rule < grammar_.rules_.size(); ++rule) {
        for (const std::uint32_t start : grammar_.rules_[rule]) {
            std::vector<std::uint32_t> rules;
            bool possible = true;
            for (std::uint32_t at = start; grammar_.elements_[at].kind != Kind::end; ++at) {
                possible = possible && grammar_.elements_[at].kind == Kind::rule;
                rules.push_back(grammar_.elements_[at].value);
            }
            if (!possible) continue;
            if (rules.empty()) found_empty(rule);
            const auto body = static_cast<std::uint32_t>(owners.size());
            owners.push_back(rule);
            missing.push_back(rules.size());
            for (const std::uint32_t mentioned : rules)
                mentions[mentioned].push_back(body);
        }
    }
    while (!todo.empty()) {
        const std::uint32_t rule = todo.back();
        todo.pop_back();
        for (const std::uint32_t body : mentions[rule]) {
            if (--missing[body] == 0) found_empty(owners[body]);
        }
    }
    return empty;
}

std::vector<std::vector<GrammarBuilder::Begin>> GrammarBuilder::find_begins() const {
    const std::vector<bool> empty = find_empty_rules();
    std::vector<std::vector<Begin>> begins(grammar_.rules_.size());
    for (std::uint32_t rule = 0; rule < grammar_.rules_.size(); ++rule) {
        for (const std::uint32_t start : grammar_.rules_[rule]) {
            for (std::uint32_t at = start; grammar_.elements_[at].kind == Kind::rule; ++at) {
                const bool last = grammar_.elements_[at + 1].kind == Kind::end;
                begins[rule].push_back({grammar_.elements_[at].value, last});
                if (!empty[grammar_.elements_[at].value]) break;
            }
        }
    }
    return begins;
}

/// A rule that may begin with itself makes the matcher's stacks grow without reading anything,
/// unless nothing is left to do after it: (a? b?)* is fine, r ::= a? r b is not.
Result<void> GrammarBuilder::check_recursion() const {
    const auto begins = find_begins();
    const std::vector<std::uint32_t> group = find_groups(begins);
    for (std::uint32_t rule = 0; rule < begins.size(); ++rule) {
        for (const Begin& begin : begins[rule]) {
            if (!begin.last && group[begin.rule] == group[rule]) {
                return fail(ErrorCode::invalid_request,
                            "the grammar or schema refers to itself before it reads anything");
            }
        }
    }
    return {};
}

/// For each rule the number of its group: rules that begin with each other (Tarjan's algorithm,
/// without recursion of its own, because the grammar may be hostile).
std::vector<std::uint32_t> GrammarBuilder::find_groups(
    const std::vector<std::vector<Begin>>& begins) {
    constexpr std::uint32_t none = ~0U;
    const std::size_t count = begins.size();
    std::vector<std::uint32_t> order(count, none);
    std::vector<std::uint32_t> lowest(count, none);
    std::vector<std::uint32_t> group(count, none);
    std::vector<std::uint32_t> open;
    std::vector<std::pair<std::uint32_t, std::size_t>> path;  // rule, next of its begins
    std::uint32_t visited = 0;
    const auto enter = [&](std::uint32_t rule) {
        order[rule] = lowest[rule] = visited++;
        open.push_back(rule);
        path.emplace_back(rule, 0);
    };
    const auto leave = [&](std::uint32_t rule) {
        path.pop_back();
        if (!path.empty()) {
            lowest[path.back().first] = std::min(lowest[path.back().first], lowest[rule]);
        }
        if (lowest[rule] != order[rule]) return;
        while (group[rule] == none) {
            group[open.back()] = rule;
            open.pop_back();
        }
    };
    for (std::uint32_t start = 0; start < count; ++start) {
        if (order[start] == none) enter(start);
        while (!path.empty()) {
            auto& [rule, next] = path.back();
            if (next == begins[rule].size()) {
                leave(rule);
                continue;
            }
            const std::uint32_t child = begins[rule][next++].rule;
            if (order[child] == none) {
                enter(child);
            } else if (group[child] == none) {
                lowest[rule] = std::min(lowest[rule], order[child]);
            }
        }
    }
    return group;
}

Result<Grammar> GrammarBuilder::finish() {
    const auto root = names_.find("root");
    if (root == names_.end()) return fail(ErrorCode::invalid_request, "the grammar has no root");
    for (const auto& [name, rule] : names_) {
        if (!defined_[rule]) {
            return fail(ErrorCode::invalid_request,
                        "the grammar mentions a rule that it does not define");
        }
    }
    grammar_.root_ = root->second;
    TRY_DO(check_recursion());
    return std::move(grammar_);
}

}  // namespace molly::engine
