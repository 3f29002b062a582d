#pragma once
// Which bytes of a text a placeholder replaces, and what it then stands for. Pure.
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "domain/finding.h"
#include "domain/texts.h"

namespace molly::policy::internal {

struct Edit {
    domain::FindingKind kind = domain::FindingKind::declared;
    std::size_t begin = 0;
    std::size_t end = 0;
    bool quoted = false;     ///< a JSON number or word: the placeholder becomes a string
    std::string value = {};  ///< as a model reads it: JSON escapes undone
};

/// The edits that leave nothing of the findings in `text`: ascending, disjoint, on code-point
/// boundaries, in JSON within one string each. Empty where the text cannot be edited: a finding
/// outside of it, a form that has no place for placeholders, JSON that is none.
std::optional<std::vector<Edit>> edits_of(std::string_view text, domain::TextForm form,
                                          const std::vector<domain::Finding>& findings);

}  // namespace molly::policy::internal
