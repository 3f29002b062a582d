#include "engine/internal/weight_pages.h"

#include <algorithm>
#include <vector>

#include <ggml-backend.h>
#include <ggml.h>
#include <llama-model.h>
#include <sys/mman.h>

namespace molly::engine {
namespace {

constexpr std::uintptr_t small_page = 4096;
constexpr std::uintptr_t huge_page = 2U << 20U;

#if defined(MADV_COLLAPSE)
constexpr int collapse = MADV_COLLAPSE;
#else
constexpr int collapse = 25;  // Linux 6.1; what does not know it refuses it
#endif

/// Whether the processor reads the buffer where it lies; ggml does not call repacked weights so.
bool in_memory(ggml_backend_buffer_t buffer) {
    if (ggml_backend_buffer_is_host(buffer)) return true;
    const ggml_backend_buffer_type_t type = ggml_backend_buffer_get_type(buffer);
    ggml_backend_dev_t device = ggml_backend_buft_get_device(type);
    return device != nullptr && ggml_backend_dev_type(device) == GGML_BACKEND_DEVICE_TYPE_CPU;
}

}  // namespace

std::uint64_t use_huge_pages(const llama_model& model) {
    struct Range {
        std::uintptr_t begin = 0;
        std::uintptr_t end = 0;
    };
    std::vector<Range> tensors;
    for (const auto& [name, tensor] : llama_internal_get_tensor_map(&model)) {
        if (tensor->buffer == nullptr || !in_memory(tensor->buffer)) continue;
        const auto start = reinterpret_cast<std::uintptr_t>(tensor->data);
        tensors.push_back({.begin = start, .end = start + ggml_nbytes(tensor)});
    }
    std::ranges::sort(tensors, {}, &Range::begin);
    std::vector<Range> ranges;
    for (const Range& tensor : tensors) {
        // Between tensors of one buffer lies less than a page.
        const bool joins = !ranges.empty() && tensor.begin < ranges.back().end + small_page;
        if (!joins) ranges.push_back(tensor);
        ranges.back().end = std::max(ranges.back().end, tensor.end);
    }
    std::uint64_t bytes = 0;
    for (const Range& range : ranges) {
        const std::uintptr_t begin = (range.begin + huge_page - 1) / huge_page * huge_page;
        const std::uintptr_t end = range.end / huge_page * huge_page;
        auto* pages = reinterpret_cast<void*>(begin);
        if (end <= begin || madvise(pages, end - begin, MADV_HUGEPAGE) != 0) continue;
        bytes += end - begin;
        // Now, and not when the system finds the time; refused where memory lies in pieces.
        static_cast<void>(madvise(pages, end - begin, collapse));
    }
    return bytes;
}

}  // namespace molly::engine
