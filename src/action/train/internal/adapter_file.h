#pragma once
// LoRA adapters as GGUF files, as llama.cpp's own loader takes them.
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "train/internal/lora_layout.h"

namespace molly::train {

struct AdapterCard {
    std::string name;
    std::string architecture;  ///< of the base
    std::string base;          ///< its name
    float alpha = 0;
    std::string license;
};

/// Writes the factors in f16, whole or not at all. Errors: unavailable.
Result<void> write_adapter(const std::filesystem::path& file, const LoraLayout& layout,
                           std::span<const float> adapter, const AdapterCard& card);
/// Reads factors of this layout. Errors: not_found, corrupt, conflict (another rank, other modules
/// or another base; names the first tensor that differs).
Result<std::vector<float>> read_adapter(const std::filesystem::path& file,
                                        const LoraLayout& layout);

}  // namespace molly::train
