#pragma once
// All phrases and patterns of all rules as one automaton. Pure after construction; safe from any
// thread.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <re2/re2.h>
#include <re2/set.h>

#include "annotate/annotate.h"
#include "base/result.h"

namespace molly::annotate {

class Matcher {
public:
    /// Errors: invalid_request with the path of a pattern that does not compile.
    static Result<std::unique_ptr<Matcher>> make(const std::vector<LabelRule>& rules);

    /// Whether any rule has something to look for.
    bool empty() const noexcept { return owners_.empty(); }

    /// Adds one to the count of each rule that finds something in `text`, as it stands or with its
    /// JSON escapes undone. `counts` has one entry per rule.
    void count(std::string_view text, std::vector<std::uint32_t>& counts) const;

private:
    Matcher();
    Result<void> add(const std::string& pattern, std::size_t rule, const std::string& path);
    void match(std::string_view text, std::vector<bool>& found) const;

    RE2::Set set_;
    std::vector<std::unique_ptr<RE2>> single_;  // the same patterns, for when the set gives up
    std::vector<std::size_t> owners_;           // shape: [patterns], the rule of each
};

/// `text` with JSON escapes undone (`\u00e8`, `\n`, `\"`): the form in which a model reads it.
std::string without_escapes(std::string_view text);

}  // namespace molly::annotate
