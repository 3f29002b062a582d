#pragma once
// From a PEFT folder (adapter_config.json, adapter_model.safetensors) to a GGUF LoRA file.
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/result.h"
#include "models/gguf.h"

namespace molly::adapters {

/// A path whose file goes away with it.
class TemporaryFile {
public:
    explicit TemporaryFile(std::filesystem::path path) : path_(std::move(path)) {}
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;
    ~TemporaryFile() {
        std::error_code ignored;
        std::filesystem::remove(path_, ignored);
    }
    const std::filesystem::path& path() const noexcept { return path_; }

private:
    std::filesystem::path path_;
};

/// Names and row order become those of `base`'s architecture (llama, qwen2, qwen3); numbers keep
/// their type. Errors: not_found, corrupt, unsupported (DoRA, per-module alphas, other
/// architectures: names what does convert them), conflict (a module that the base lacks),
/// exhausted.
Result<void> convert_peft(const std::filesystem::path& folder, const models::Gguf& base,
                          const std::filesystem::path& into);

}  // namespace molly::adapters
