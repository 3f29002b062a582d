#pragma once
// The examples of one run, split into what it learns from and what it is measured on.
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "train/internal/packing.h"
#include "train/tuning.h"

namespace molly::train {

struct Material {
    Examples examples;           ///< of the data file
    Examples held_out_examples;  ///< of the held-out file, when there is one
    std::vector<const Example*> training, held_out;

    /// Errors: as read_examples; invalid_request (nothing left to learn from).
    static Result<Material> read(const TuningOptions& options, RowKind kind, TextCoder& coder,
                                 std::uint32_t context_max);
    std::uint32_t longest() const noexcept;  ///< places that the longest sequence takes
};

/// The answers of the examples; with `pairs` also the worse ones, each after its better one.
std::vector<const Sequence*> sequences_of(const std::vector<const Example*>& examples, bool pairs);
/// The numbers of all rows of a packing.
std::vector<std::size_t> all_rows(const Packing& packing);
/// Tokens of a row: what was asked for, or what the longest example needs within `most`.
std::uint32_t fitting_context(const TuningOptions& options, const Material& material,
                              std::uint32_t most);
/// The longest row for a model that was trained for `trained` tokens (0: unknown).
std::uint32_t context_limit(std::uint32_t trained);

}  // namespace molly::train
