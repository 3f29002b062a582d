#pragma once
// A table of how well several models answered each prompt. Values.
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace molly::evaluate {

struct ScoreTable {
    std::vector<std::string> prompts;
    std::vector<std::string> columns;        ///< names of the models
    std::vector<std::vector<float>> scores;  ///< in [0, 1]. shape: [columns][prompts]
    std::vector<std::vector<float>> costs;   ///< of one answer; empty: not known. shape: as scores
    std::size_t dropped = 0;                 ///< rows marked as contaminated

    /// The column's place, or -1.
    int place_of(const std::string& column) const noexcept;
};

/// Lines of JSON: `prompt`, and the scores either as one number a model or inside `scores`; `costs`
/// likewise. A `domain` is not read: what decides is the text. Errors: not_found, invalid_request
/// with the line.
Result<ScoreTable> read_score_table(const std::filesystem::path& file);

}  // namespace molly::evaluate
