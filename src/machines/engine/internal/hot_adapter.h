#pragma once
// One LoRA adapter in memory, in the order in which the kernels read it. Never changes once loaded;
// safe from any thread.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "engine/internal/lora_kernels.h"
#include "engine/internal/page_arena.h"

struct llama_adapter_lora;
struct llama_model;

namespace molly::engine {

/// A weight of the base that an adapter may change.
struct LinearLayer {
    std::string name;
    std::uint64_t in = 0;
    std::uint64_t out = 0;
    bool usable = false;  ///< its shape in the graph is one that the kernels take
};

/// A model to which llama.cpp's own adapters are added. It lists them, so that nothing may compute
/// while one comes or goes.
struct WholeModel {
    llama_model* model = nullptr;
    std::mutex mutex;
};

class HotAdapter;

/// A GGUF LoRA file whose tensors are known to fit, not read yet.
class AdapterFile {
public:
    /// Every tensor must belong to one of `layers`, which outlive this. Errors: not_found, corrupt,
    /// conflict (naming the first tensor that does not fit), unsupported.
    static Result<AdapterFile> open(const std::filesystem::path& file,
                                    std::span<const LinearLayer> layers,
                                    AdapterNumbers numbers = AdapterNumbers::f16);
    AdapterFile(AdapterFile&& other) noexcept;
    AdapterFile& operator=(AdapterFile&& other) noexcept;
    AdapterFile(const AdapterFile&) = delete;
    AdapterFile& operator=(const AdapterFile&) = delete;
    ~AdapterFile();

    /// Bytes that the numbers take in kernel layout.
    std::size_t bytes() const noexcept;
    /// Reads and packs them. Errors: corrupt, exhausted.
    Result<std::shared_ptr<const HotAdapter>> load(PageArena& arena) const;

private:
    struct Opened;
    Result<std::shared_ptr<const HotAdapter>> load(PageArena& arena, bool whole) const;
    explicit AdapterFile(std::unique_ptr<Opened> opened);
    std::unique_ptr<Opened> opened_;
};

class HotAdapter {
public:
    /// One that llama.cpp applies itself. Errors: not_found, corrupt.
    static Result<std::shared_ptr<const HotAdapter>> load_whole(const std::filesystem::path& file,
                                                                WholeModel& model);

    /// Null when this adapter leaves the layer as it is.
    const LoraPair* pair(std::uint32_t layer) const noexcept {
        return pairs_[layer].empty() ? nullptr : &pairs_[layer];
    }
    /// Layers that it changes.
    std::size_t matched() const noexcept { return matched_; }
    /// That its pages take.
    std::size_t bytes() const noexcept;
    /// llama.cpp's own form; null for one that was loaded for the kernels.
    const std::shared_ptr<llama_adapter_lora>& whole() const noexcept { return whole_; }

private:
    friend class AdapterFile;
    HotAdapter() = default;

    std::vector<PageRun> pages_;
    std::shared_ptr<llama_adapter_lora> whole_;
    std::vector<LoraPair> pairs_;  // shape: [layers]
    std::size_t matched_ = 0;
};

/// Bytes that an adapter of this rank on all of `layers` takes.
std::size_t usual_adapter_bytes(std::span<const LinearLayer> layers, std::uint32_t rank,
                                AdapterNumbers numbers);

}  // namespace molly::engine
