#pragma once
// The keys and values of a context as memory: what a place of it no longer needs goes back to the
// system, and comes again, as zeros, when it is written. One thread at a time.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

struct ggml_tensor;

namespace molly::engine {

class CacheMemory {
public:
    /// `tensors` as llama.cpp made them, shape: [row, tokens, places]. With one that is of another
    /// shape, or not in this process's memory, nothing is given back.
    CacheMemory(std::span<ggml_tensor* const> tensors, std::uint32_t places);

    bool usable() const noexcept { return !regions_.empty(); }
    /// Of one place.
    std::uint64_t bytes_per_token() const noexcept { return bytes_per_token_; }
    /// Nobody may read what this place held.
    void release(std::uint32_t place) const;
    void release_all() const;
    /// What the system says of it: bytes in memory.
    std::uint64_t resident() const;

private:
    struct Region {
        std::byte* start = nullptr;
        std::size_t place_bytes = 0;
    };
    std::vector<Region> regions_;
    std::uint32_t places_ = 0;
    std::uint64_t bytes_per_token_ = 0;
};

}  // namespace molly::engine
