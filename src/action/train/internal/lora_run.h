#pragma once
// One run on an adapter: its steps on examples, and the adapter at its end.
#include <filesystem>

#include "base/result.h"
#include "train/internal/checkpoint.h"
#include "train/internal/lora_plan.h"
#include "train/internal/lora_trainer.h"
#include "train/internal/material.h"
#include "train/internal/packing.h"
#include "train/lora.h"

namespace molly::train {

class LoraRun {
public:
    /// `model` and `material` must outlive it.
    LoraRun(std::filesystem::path folder, LoraPlan plan, const FrozenModel& model,
            const Material& material, Watch& watch);

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
    const Material& material_;
    Watch& watch_;
    LoraLayout layout_;
    LoraTrainer trainer_;
    Progress progress_;
};

}  // namespace molly::train
