#pragma once
// One pre-training run: its steps on a corpus, and the model at its end.
#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/result.h"
#include "train/internal/checkpoint.h"
#include "train/internal/corpus.h"
#include "train/internal/run_plan.h"
#include "train/train.h"

namespace molly::train {

class Run {
public:
    Run(std::filesystem::path folder, RunPlan plan, const Tokenizer& tokenizer,
        const Corpus& corpus, Watch& watch);

    /// The state before the first step.
    TrainingState fresh() const { return trainer_.fresh(plan_.seed); }
    /// Seconds that one step takes, from a few steps on weights that are then forgotten.
    double measure_step();
    /// Trains until the plan's last step, an early end or watch.stop().
    Result<Outcome> go(Checkpoint from);

private:
    class Work;

    double loss_of(const std::vector<const std::uint16_t*>& windows,
                   const std::vector<float>& weights);
    Result<Outcome> finish(const Checkpoint& now);

    std::filesystem::path folder_;
    RunPlan plan_;
    const Tokenizer& tokenizer_;
    const Corpus& corpus_;
    Watch& watch_;
    Trainer trainer_;
    BatchArrays batch_;
    Progress progress_;
};

}  // namespace molly::train
