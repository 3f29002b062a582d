#pragma once
// What a run does, fixed before its first step, so that every resumption does the same. Kept as
// run.json in the run's folder.
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "train/internal/optimizer.h"
#include "train/shape.h"
#include "train/train.h"

namespace molly::train {

struct PlannedSource {
    Source source;
    std::string hash;  ///< SHA-256 of the text, hex
};

struct RunPlan {
    std::string name, preset, license;
    Shape shape;
    std::vector<PlannedSource> sources;
    std::string vocabulary;  ///< the tokenizer's fingerprint
    std::string kernels;     ///< of the processor that it began on
    Precision precision = Precision::f32;
    std::uint64_t seed = 1;
    std::uint32_t threads = 1;
    std::uint32_t batch = 8;
    std::uint32_t at_once = 1;  ///< sequences of one thread at once
    std::uint64_t evaluate_every = 0;
    std::uint64_t report_every = 1;
    std::uint32_t evaluation_windows = 64;
    std::uint32_t patience = 0;
    double checkpoint_minutes = 5;
    OptimizerOptions optimizer;

    std::uint64_t tokens_per_step() const noexcept {
        return static_cast<std::uint64_t>(batch) * shape.context;
    }
};

/// Errors: unavailable.
Result<void> write_plan(const std::filesystem::path& run, const RunPlan& plan);
/// Errors: not_found, corrupt.
Result<RunPlan> read_plan(const std::filesystem::path& run);

}  // namespace molly::train
