#pragma once
// One run on all weights of a model: its steps on answers, and the model at its end.
#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"
#include "train/full.h"
#include "train/internal/checkpoint.h"
#include "train/internal/material.h"
#include "train/internal/optimizer.h"
#include "train/internal/tuning_plan.h"

namespace molly::train {

/// What the run does, fixed before its first step. Kept as run.json in its folder.
struct FullPlan : TuningPlan {
    FullOptions options;  ///< with every default filled in
    std::string model;    ///< the base's own name
};

/// Errors: unavailable.
Result<void> write_plan(const std::filesystem::path& run, const FullPlan& plan);
/// Errors: not_found (no run, or one of another kind), corrupt.
Result<FullPlan> read_full_plan(const std::filesystem::path& run);

class FullRun {
public:
    /// `material` must outlive it. `start`: the base's weights, in the order of its shape's layout.
    FullRun(std::filesystem::path folder, FullPlan plan, const Shape& shape,
            std::vector<float> start, const Material& material, Watch& watch);

    std::size_t size() const noexcept { return trainer_.layout().size; }
    /// The state before the first step.
    TrainingState fresh() const;
    Result<FullOutcome> go(Checkpoint now);

private:
    class Work;

    Result<FullOutcome> finish(const Checkpoint& now, double before);

    std::filesystem::path folder_;
    FullPlan plan_;
    Trainer trainer_;
    std::vector<float> start_;
    const Material& material_;
    Watch& watch_;
    Progress progress_;
};

}  // namespace molly::train
