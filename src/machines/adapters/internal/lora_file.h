#pragma once
// What a GGUF LoRA file holds, and whether it fits a base. Strict: the first thing that is wrong is
// named.
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "adapters/manifest.h"
#include "base/result.h"
#include "models/gguf.h"

namespace molly::adapters {

/// The largest rank that the engine's kernels take.
inline constexpr std::uint64_t rank_max = 256;

/// The two factors of one weight's change: W + scale * B * A.
struct LoraPair {
    std::string weight;    ///< the base's tensor, `blk.0.attn_q.weight`
    models::GgufTensor a;  ///< shape: [in, rank]
    models::GgufTensor b;  ///< shape: [rank, out]
};

struct LoraFile {
    std::string architecture;
    double alpha = 0;
    std::vector<LoraPair> pairs;  ///< sorted by weight
    std::uint64_t data_offset = 0;

    /// Rank, alpha, modules and tensor count.
    void describe(Manifest& manifest) const;
};

/// Errors: corrupt, unsupported (a tensor that is no factor of a linear layer), not_found.
Result<LoraFile> read_lora(const std::filesystem::path& file);

/// Whether every pair fits a weight of `base`. Errors: conflict, naming the first that does not.
Result<void> check_fit(const LoraFile& lora, const models::Gguf& base);

/// Reads all numbers. Errors: corrupt, naming the first tensor with one that is not finite or does
/// not fit half precision.
Result<void> check_numbers(const std::filesystem::path& file, const LoraFile& lora);

}  // namespace molly::adapters
