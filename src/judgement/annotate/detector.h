#pragma once
// Finds what identifies somebody, or opens something, in a text. Pure after construction; safe from
// any thread. One pass over the text proposes places; recognisers with check digits and context
// decide; a small sequence model names persons, organisations and places (docs/detection.md).
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "domain/finding.h"

namespace molly::annotate {

class Tagger;

struct DetectorOptions {
    bool names = true;       ///< persons, organisations, places and addresses too
    std::string_view model;  ///< of names, as its file has it; empty: the one in this binary
};

class Detector {
public:
    /// Errors: corrupt, when the model of names does not read.
    static Result<std::unique_ptr<const Detector>> make(const DetectorOptions& options);
    ~Detector();
    Detector(const Detector&) = delete;
    Detector& operator=(const Detector&) = delete;

    /// Spans in bytes of `text`, ascending, disjoint, on code-point boundaries. Invalid UTF-8 is
    /// searched too; no span begins or ends inside one of its well-formed code points.
    /// `known` was found already (by rules); it is among what comes back.
    std::vector<domain::Finding> find(std::string_view text,
                                      std::vector<domain::Finding> known = {}) const;

    /// Searches `json` (JSON text, or a text with JSON escapes in it) in the form in which a model
    /// reads it; spans in bytes of `json` as it stands, whole escapes included.
    std::vector<domain::Finding> find_json(std::string_view json, bool names = true) const;

    /// Identifiers and secrets only, without names: for ids, keys and other tokens.
    std::vector<domain::Finding> find_structured(std::string_view text) const;

    /// The detectors that are loaded, such as `identifiers`, `secrets` and `names`.
    std::vector<std::string> loaded() const;

private:
    explicit Detector(std::shared_ptr<const Tagger> tagger);

    std::shared_ptr<const Tagger> tagger_;  // null: without names
};

/// Moves spans outwards to code points of `text`, sorts them, and joins those that overlap into one
/// that the weightiest kind names.
void settle(std::string_view text, std::vector<domain::Finding>& findings);

}  // namespace molly::annotate
