#include "train/internal/adapter_file.h"

#include <fstream>
#include <memory>

#include <fmt/format.h>
#include <ggml.h>
#include <gguf.h>

#include "train/internal/kernels.h"
#include "train/internal/whole_file.h"

namespace molly::train {
namespace {

using GgufPointer = std::unique_ptr<gguf_context, decltype(&gguf_free)>;
using GgmlPointer = std::unique_ptr<ggml_context, decltype(&ggml_free)>;

}  // namespace

Result<void> write_adapter(const std::filesystem::path& file, const LoraLayout& layout,
                           std::span<const float> adapter, const AdapterCard& card) {
    const GgufPointer out(gguf_init_empty(), gguf_free);
    const auto text = [&out](const char* key, const std::string& value) {
        if (!value.empty()) gguf_set_val_str(out.get(), key, value.c_str());
    };
    text("general.type", "adapter");
    text("general.architecture", card.architecture);
    text("general.name", card.name);
    text("general.license", card.license);
    text("adapter.type", "lora");
    gguf_set_val_f32(out.get(), "adapter.lora.alpha", card.alpha);
    if (!card.base.empty()) {
        gguf_set_val_u32(out.get(), "general.base_model.count", 1);
        text("general.base_model.0.name", card.base);
    }
    ggml_init_params params{};
    params.mem_size = layout.size * 2 + layout.tensors.size() * 1024 + (1U << 20U);
    const GgmlPointer tensors(ggml_init(params), ggml_free);
    for (const LoraTensor& tensor : layout.tensors) {
        ggml_tensor* made = ggml_new_tensor_2d(tensors.get(), GGML_TYPE_F16,
                                               static_cast<std::int64_t>(tensor.columns),
                                               static_cast<std::int64_t>(tensor.rows));
        ggml_set_name(made, tensor.name.c_str());
        ggml_fp32_to_fp16_row(adapter.data() + tensor.offset, static_cast<ggml_fp16_t*>(made->data),
                              static_cast<std::int64_t>(tensor.rows * tensor.columns));
        gguf_add_tensor(out.get(), made);
    }
    return write_whole(file, [&out](const std::filesystem::path& path) {
        return gguf_write_to_file(out.get(), path.c_str(), false);
    });
}

Result<std::vector<float>> read_adapter(const std::filesystem::path& file,
                                        const LoraLayout& layout) {
    if (!std::filesystem::exists(file)) {
        return fail(
            Error(ErrorCode::not_found, fmt::format("there is no adapter {}", file.string()))
                .italian(fmt::format("l'adattatore {} non esiste", file.string())));
    }
    ggml_context* read = nullptr;
    gguf_init_params params{};
    params.ctx = &read;
    const GgufPointer in(gguf_init_from_file(file.c_str(), params), gguf_free);
    const GgmlPointer tensors(read, ggml_free);
    if (in == nullptr || tensors == nullptr) {
        return fail(ErrorCode::corrupt,
                    fmt::format("{} is damaged or no GGUF adapter", file.string()));
    }
    std::vector<float> out(layout.size);
    for (const LoraTensor& wanted : layout.tensors) {
        const ggml_tensor* found = ggml_get_tensor(tensors.get(), wanted.name.c_str());
        const bool fits = found != nullptr &&
                          static_cast<std::size_t>(found->ne[0]) == wanted.columns &&
                          static_cast<std::size_t>(ggml_nrows(found)) == wanted.rows &&
                          (found->type == GGML_TYPE_F16 || found->type == GGML_TYPE_F32);
        if (!fits) {
            return fail(ErrorCode::conflict,
                        fmt::format("{}: {} is not [{}, {}]; go on with the rank and modules that "
                                    "the adapter has",
                                    file.string(), wanted.name, wanted.rows, wanted.columns));
        }
        float* to = out.data() + wanted.offset;
        const std::size_t count = wanted.rows * wanted.columns;
        if (found->type == GGML_TYPE_F32) {
            std::copy_n(static_cast<const float*>(found->data), count, to);
        } else {
            kernels().from_f16(count, static_cast<const std::byte*>(found->data), to);
        }
    }
    return out;
}

}  // namespace molly::train
