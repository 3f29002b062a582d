#pragma once
// What a run on an adapter does, fixed before its first step. Kept as run.json in its folder.
#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"
#include "train/internal/lora_trainer.h"
#include "train/lora.h"

namespace molly::train {

struct LoraPlan {
    LoraOptions options;  ///< with every default filled in
    std::string base_hash, data_hash, held_out_hash, from_hash, vocabulary, kernels;
    Precision precision = Precision::f32;
    std::uint32_t threads = 1;
    std::uint32_t rows_at_once = 1;
    std::uint64_t parameters = 0;  ///< of the adapter
    std::uint64_t evaluate_every = 1;
    std::uint64_t report_every = 1;
    OptimizerOptions optimizer;

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
