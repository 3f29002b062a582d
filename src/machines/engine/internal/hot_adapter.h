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
#include "engine/internal/lora_kernels.h"

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

/// Whole pages of memory that go back to the system at once.
class Pages {
public:
    Pages() = default;
    /// Errors: exhausted.
    static Result<Pages> take(std::size_t bytes);
    Pages(Pages&& other) noexcept;
    Pages& operator=(Pages&& other) noexcept;
    Pages(const Pages&) = delete;
    Pages& operator=(const Pages&) = delete;
    ~Pages();

    std::uint16_t* halves() const noexcept { return static_cast<std::uint16_t*>(start_); }
    std::size_t bytes() const noexcept { return bytes_; }

private:
    void* start_ = nullptr;
    std::size_t bytes_ = 0;
};

/// A model to which llama.cpp's own adapters are added. It lists them, so that nothing may compute
/// while one comes or goes.
struct WholeModel {
    llama_model* model = nullptr;
    std::mutex mutex;
};

class HotAdapter {
public:
    /// Reads a GGUF LoRA file. Every tensor must belong to one of `layers`. Errors: not_found,
    /// corrupt, conflict (naming the first tensor that does not fit), unsupported, exhausted.
    static Result<std::shared_ptr<const HotAdapter>> load(const std::filesystem::path& file,
                                                          std::span<const LinearLayer> layers);
    /// One that llama.cpp applies itself. Errors: not_found, corrupt.
    static Result<std::shared_ptr<const HotAdapter>> load_whole(const std::filesystem::path& file,
                                                                WholeModel& model);

    /// Null when this adapter leaves the layer as it is.
    const LoraPair* pair(std::uint32_t layer) const noexcept {
        return pairs_[layer].a != nullptr ? &pairs_[layer] : nullptr;
    }
    /// Layers that it changes.
    std::size_t matched() const noexcept { return matched_; }
    std::size_t bytes() const noexcept { return pages_.bytes(); }
    /// llama.cpp's own form; null for one that was loaded for the kernels.
    const std::shared_ptr<llama_adapter_lora>& whole() const noexcept { return whole_; }

private:
    HotAdapter() = default;

    Pages pages_;
    std::shared_ptr<llama_adapter_lora> whole_;
    std::vector<LoraPair> pairs_;  // shape: [layers]
    std::size_t matched_ = 0;
};

/// Bytes that the file's numbers will take in kernel layout, without reading them. Errors: as load.
Result<std::size_t> hot_bytes_of(const std::filesystem::path& file,
                                 std::span<const LinearLayer> layers);

}  // namespace molly::engine
