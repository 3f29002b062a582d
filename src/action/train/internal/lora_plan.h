#pragma once
// What a run on an adapter does, fixed before its first step. Kept as run.json in its folder.
#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"
#include "train/internal/lora_trainer.h"
#include "train/internal/tuning_plan.h"
#include "train/lora.h"

namespace molly::train {

struct LoraPlan : TuningPlan {
    LoraOptions options;  ///< with every default filled in
    std::string from_hash;

    AdapterScale scale() const noexcept {
        return {options.rank, static_cast<float>(options.alpha / options.rank),
                static_cast<float>(options.dropout)};
    }
};

/// Errors: unavailable.
Result<void> write_plan(const std::filesystem::path& run, const LoraPlan& plan);
/// Errors: not_found (no run, or one of another kind), corrupt.
Result<LoraPlan> read_lora_plan(const std::filesystem::path& run);

}  // namespace molly::train
