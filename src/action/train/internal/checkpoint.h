#pragma once
// Everything that changes during a run, in one file that is whole or not there. It holds no clock,
// so that equal states are equal bytes.
#include <cstdint>
#include <filesystem>

#include "base/result.h"
#include "train/internal/optimizer.h"

namespace molly::train {

struct Checkpoint {
    TrainingState state;
    double held_out_loss = 0;       ///< at the last evaluation; 0: none yet
    double best_held_out_loss = 0;  ///< 0: none yet
    std::uint64_t evaluations_since_best = 0;
    std::vector<float> best;  ///< weights of the best evaluation, where the run may end early
    double loss_sum = 0;      ///< of the steps since the last report
};

/// Errors: unavailable.
Result<void> write_checkpoint(const std::filesystem::path& run, const Checkpoint& checkpoint);
/// `size`: weights of the model. Errors: not_found, corrupt.
Result<Checkpoint> read_checkpoint(const std::filesystem::path& run, std::size_t size);
/// The step of the last checkpoint; 0 when there is none.
std::uint64_t checkpoint_step(const std::filesystem::path& run);

}  // namespace molly::train
