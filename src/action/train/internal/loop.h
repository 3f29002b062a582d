#pragma once
// What every run repeats: steps, evaluations, reports, checkpoints.
#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/result.h"
#include "train/internal/checkpoint.h"
#include "train/train.h"

namespace molly::train {

class LoopWork {
public:
    virtual ~LoopWork() = default;
    /// One step; what it does depends on the state alone.
    virtual StepReport step(TrainingState& state) = 0;
    /// The mean loss on what training never sees.
    virtual double held_out_loss(const std::vector<float>& weights) = 0;
};

struct LoopPlan {
    std::uint64_t steps = 0;
    std::uint64_t evaluate_every = 1;
    std::uint64_t report_every = 1;
    std::uint32_t patience = 0;  ///< evaluations without a better one before it ends; 0: no limit
    double checkpoint_minutes = 5;
    std::uint64_t tokens_per_step = 0;
};

/// Goes on from `now` to the last step (true), or until the watch stops it (false); a checkpoint is
/// written either way. Errors: internal (the loss is no number), unavailable.
Result<bool> run_loop(const std::filesystem::path& folder, const LoopPlan& plan, LoopWork& work,
                      Watch& watch, Checkpoint& now, Progress& progress);

/// The weights of the best evaluation where the run keeps them, otherwise the last.
const std::vector<float>& chosen_weights(const Checkpoint& checkpoint) noexcept;

}  // namespace molly::train
