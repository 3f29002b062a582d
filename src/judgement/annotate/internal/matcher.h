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
#include "domain/finding.h"

namespace molly::annotate {

class Matcher {
public:
    /// Errors: invalid_request with the path of a pattern that does not compile.
    static Result<std::unique_ptr<Matcher>> make(const std::vector<LabelRule>& rules);

    /// Whether any rule has something to look for.
    bool empty() const noexcept { return owners_.empty(); }

    /// Marks each rule that finds something in `text`, as it stands or with its JSON escapes
    /// undone. `found` has one entry per rule.
    void match(std::string_view text, std::vector<bool>& found) const;

    /// Appends a finding for everything that the rule matches in `text`, in the same two forms.
    void locate(std::string_view text, std::size_t rule, std::vector<domain::Finding>& out) const;

private:
    Matcher();
    Result<void> add(const std::string& pattern, std::size_t rule, const std::string& path);
    void match_form(std::string_view text, std::vector<bool>& found) const;

    RE2::Set set_;
    std::vector<std::unique_ptr<RE2>> single_;  // the same patterns, for when the set gives up
    std::vector<std::size_t> owners_;           // shape: [patterns], the rule of each
};

}  // namespace molly::annotate
