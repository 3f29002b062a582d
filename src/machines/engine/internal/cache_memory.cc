#include "engine/internal/cache_memory.h"

#include <algorithm>

#include <ggml-backend.h>
#include <ggml.h>
#include <sys/mman.h>
#include <unistd.h>

namespace molly::engine {
namespace {

std::uintptr_t system_page() {
    static const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    return page;
}

/// The whole pages between two addresses.
struct WholePages {
    WholePages(const std::byte* start, std::size_t bytes) {
        const auto page = system_page();
        const auto address = reinterpret_cast<std::uintptr_t>(start);
        begin = (address + page - 1) / page * page;
        end = std::max(begin, (address + bytes) / page * page);
    }
    std::size_t bytes() const { return end - begin; }
    void* start() const { return reinterpret_cast<void*>(begin); }

    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
};

bool ours(const ggml_tensor& tensor, std::uint32_t places) {
    return tensor.data != nullptr && tensor.buffer != nullptr &&
           ggml_backend_buffer_is_host(tensor.buffer) && ggml_is_contiguous(&tensor) &&
           tensor.ne[2] == static_cast<std::int64_t>(places) && tensor.ne[3] == 1;
}

}  // namespace

CacheMemory::CacheMemory(std::span<ggml_tensor* const> tensors, std::uint32_t places)
    : places_(places) {
    const bool all = std::ranges::all_of(
        tensors, [&](const ggml_tensor* tensor) { return ours(*tensor, places); });
    if (!all) return;
    for (const ggml_tensor* tensor : tensors) {
        regions_.push_back(
            {.start = static_cast<std::byte*>(tensor->data), .place_bytes = tensor->nb[2]});
        bytes_per_token_ += tensor->nb[1];
    }
}

void CacheMemory::release(std::uint32_t place) const {
    for (const Region& region : regions_) {
        const WholePages pages(region.start + place * region.place_bytes, region.place_bytes);
        if (pages.bytes() > 0) madvise(pages.start(), pages.bytes(), MADV_DONTNEED);
    }
}

void CacheMemory::release_all() const {
    for (std::uint32_t place = 0; place < places_; ++place)
        release(place);
}

std::uint64_t CacheMemory::resident() const {
    std::uint64_t bytes = 0;
    for (const Region& region : regions_) {
        const WholePages pages(region.start, region.place_bytes * places_);
        constexpr std::size_t pages_max = std::size_t{1} << 32U;
        const std::size_t count = pages.bytes() / system_page();
        if (count == 0 || count > pages_max) continue;
        std::vector<unsigned char> there(count);
        if (mincore(pages.start(), pages.bytes(), there.data()) != 0) continue;
        bytes += static_cast<std::uint64_t>(std::ranges::count_if(
                     there, [](unsigned char page) { return (page & 1U) != 0; })) *
                 system_page();
    }
    return bytes;
}

}  // namespace molly::engine
