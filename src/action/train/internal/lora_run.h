#pragma once
// One run on an adapter: its steps on examples, and the adapter at its end.
#include <filesystem>
#include <memory>
#include <vector>

#include "base/result.h"
#include "train/internal/checkpoint.h"
#include "train/internal/lora_plan.h"
#include "train/internal/lora_trainer.h"
#include "train/internal/packing.h"
#include "train/lora.h"

namespace molly::train {

/// What a run learns from and is measured on.
struct LoraMaterial {
    Examples examples;           ///< of the data file
    Examples held_out_examples;  ///< of the held-out file, when there is one
    std::vector<const Example*> training, held_out;

    /// Errors: as read_examples; invalid_request (nothing left to learn from).
    static Result<LoraMaterial> read(const LoraOptions& options, TextCoder& coder,
                                     std::uint32_t context_max);
    std::uint32_t longest() const noexcept;  ///< places that the longest sequence takes
};

class LoraRun {
public:
    /// `model` and `material` must outlive it.
    LoraRun(std::filesystem::path folder, LoraPlan plan, const FrozenModel& model,
            const LoraMaterial& material, Watch& watch);

    const LoraLayout& layout() const noexcept { return layout_; }
    TrainingState fresh() const { return trainer_.fresh(plan_.options.seed); }
    Result<LoraOutcome> go(Checkpoint now);

private:
    class Answers;
    class Pairs;

    Result<LoraOutcome> finish(const Checkpoint& now, double base_loss, double accuracy);

    std::filesystem::path folder_;
    LoraPlan plan_;
    const FrozenModel& model_;
    const LoraMaterial& material_;
    Watch& watch_;
    LoraLayout layout_;
    LoraTrainer trainer_;
    Progress progress_;
};

}  // namespace molly::train
