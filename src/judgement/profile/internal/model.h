#pragma once
// The file of a classifier, and the sums over its rows. Pure.
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "profile/classifier.h"
#include "profile/internal/calibration.h"
#include "profile/internal/ngrams.h"

namespace molly::profile {

/// One cache line per hashed feature: a weight for each output, and how rare the feature is.
inline constexpr std::size_t row_lanes = 64;
inline constexpr std::size_t rarity_lane = row_lanes - 1;  ///< idf x rarity_unit, unsigned
inline constexpr float rarity_unit = 16;
inline constexpr std::size_t topics_max = row_lanes - 1 - domain::task_types - 2;

/// Where each output stands in a row.
struct Lanes {
    std::size_t topics = 0;
    std::size_t tasks() const noexcept { return topics; }
    std::size_t difficulty() const noexcept { return topics + domain::task_types; }
    std::size_t scope() const noexcept { return difficulty() + 1; }
    std::size_t count() const noexcept { return scope() + 1; }
};

using Outputs = std::array<float, row_lanes>;
using Row = std::array<std::int8_t, row_lanes>;

/// Everything that a model file holds.
struct Model {
    std::vector<Topic> topics;
    unsigned row_bits = 0;
    Outputs scale{};  ///< of each lane's weights
    Outputs bias{};
    Choice topic_choice;  ///< groups are the fields
    Choice task_choice;
    ScopeSigns scope_weights{0, 1};
    std::vector<Row> rows;  ///< shape: [2^row_bits]
    /// Features of ordinary requests, against which a specialist's are set apart.
    std::vector<std::vector<std::uint32_t>> background;

    Lanes lanes() const noexcept { return {topics.size()}; }
};

/// Errors: corrupt.
Result<Model> model_from(std::string_view bytes);
std::string to_bytes(const Model& model);
std::string_view built_in_model() noexcept;

/// What was seen of one text: the logits before any calibration, and the signs.
struct Sums {
    Outputs outputs{};
    Signs signs{};
};
Sums sum_rows(const Model& model, const Features& features) noexcept;
/// Posteriors of the logits.
Reading reading_of(const Model& model, const Sums& sums);
/// What the calibration of the scope looks at, of a reading whose topics are calibrated.
ScopeSigns scope_signs_of(const Model& model, const Sums& sums, const Reading& reading) noexcept;

}  // namespace molly::profile
