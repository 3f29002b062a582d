#include "engine/internal/weight_pages.h"

#include <set>

#include <ggml-backend.h>
#include <ggml.h>
#include <llama-model.h>
#include <sys/mman.h>

namespace molly::engine {
namespace {

constexpr std::uintptr_t huge_page = 2U << 20U;

#if defined(MADV_COLLAPSE)
constexpr int collapse = MADV_COLLAPSE;
#else
constexpr int collapse = 25;  // Linux 6.1; what does not know it refuses it
#endif

/// Whether the processor reads the buffer where it lies; ggml calls repacked weights foreign.
bool in_memory(ggml_backend_buffer_t buffer) {
    const ggml_backend_buffer_type_t type = ggml_backend_buffer_get_type(buffer);
    ggml_backend_dev_t device = ggml_backend_buft_get_device(type);
    return device != nullptr && ggml_backend_dev_type(device) == GGML_BACKEND_DEVICE_TYPE_CPU;
}

}  // namespace

std::uint64_t use_huge_pages(const llama_model& model) {
    std::set<ggml_backend_buffer_t> buffers;
    for (const auto& [name, tensor] : llama_internal_get_tensor_map(&model))
        if (tensor->buffer != nullptr && in_memory(tensor->buffer)) buffers.insert(tensor->buffer);
    std::uint64_t bytes = 0;
    for (ggml_backend_buffer_t buffer : buffers) {
        const auto start = reinterpret_cast<std::uintptr_t>(ggml_backend_buffer_get_base(buffer));
        const std::uintptr_t begin = (start + huge_page - 1) / huge_page * huge_page;
        const std::uintptr_t end =
            (start + ggml_backend_buffer_get_size(buffer)) / huge_page * huge_page;
        if (end <= begin) continue;
        auto* pages = reinterpret_cast<void*>(begin);
        if (madvise(pages, end - begin, MADV_HUGEPAGE) != 0) continue;
        bytes += end - begin;
        // Now, and not when the system finds the time; refused where memory lies in pieces.
        static_cast<void>(madvise(pages, end - begin, collapse));
    }
    return bytes;
}

}  // namespace molly::engine
