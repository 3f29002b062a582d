#pragma once
// Finds what identifies somebody, or opens something, in a text. Pure after construction; safe from
// any thread. One pass over the text proposes places; recognisers with check digits and context
// decide (docs/detection.md).
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "domain/finding.h"

namespace molly::annotate {

class Detector {
public:
    /// Spans in bytes of `text`, ascending, disjoint, on code-point boundaries. Invalid UTF-8 is
    /// searched too; no span begins or ends inside one of its well-formed code points.
    std::vector<domain::Finding> find(std::string_view text) const;

    /// Searches `json` (JSON text, or a text with JSON escapes in it) in the form in which a model
    /// reads it; spans in bytes of `json` as it stands, whole escapes included.
    std::vector<domain::Finding> find_json(std::string_view json) const;

    /// The detectors that are loaded, such as `identifiers` and `secrets`.
    std::vector<std::string> loaded() const;
};

/// Moves spans outwards to code points of `text`, sorts them, and joins those that overlap into one
/// that the weightiest kind names.
void settle(std::string_view text, std::vector<domain::Finding>& findings);

}  // namespace molly::annotate
