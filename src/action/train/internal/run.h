#pragma once
// The loop of one run: steps, evaluations, reports, checkpoints.
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/result.h"
#include "train/internal/checkpoint.h"
#include "train/internal/corpus.h"
#include "train/internal/run_plan.h"
#include "train/train.h"

namespace molly::train {

/// The folder of a run while one process works on it.
class RunLock {
public:
    /// Errors: conflict (another process has it), unavailable.
    static Result<RunLock> take(const std::filesystem::path& run);
    /// Whether some process has it.
    static bool taken(const std::filesystem::path& run);
    RunLock(RunLock&& other) noexcept;
    RunLock& operator=(RunLock&&) = delete;
    RunLock(const RunLock&) = delete;
    RunLock& operator=(const RunLock&) = delete;
    ~RunLock();

private:
    explicit RunLock(int file) : file_(file) {}
    int file_;
};

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
    using Time = std::chrono::steady_clock::time_point;

    bool evaluate(Checkpoint& now);
    double loss_of(const std::vector<const std::uint16_t*>& windows,
                   const std::vector<float>& weights);
    Result<void> report(Checkpoint& now, const StepReport& step);
    Result<Outcome> finish(const Checkpoint& now);

    std::filesystem::path folder_;
    RunPlan plan_;
    const Tokenizer& tokenizer_;
    const Corpus& corpus_;
    Watch& watch_;
    Trainer trainer_;
    BatchArrays batch_;
    Progress progress_;
    Time began_{};
    std::uint64_t began_step_ = 0;
};

}  // namespace molly::train
