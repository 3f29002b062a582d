#pragma once
// Several LoRA files as the one file whose delta is their sum: the plain definition.
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "engine/internal/test_adapter.h"

namespace molly::engine::testing {

/// The factors of one weight, as numbers.
struct PlainFactors {
    std::int64_t in = 0;
    std::int64_t out = 0;
    std::int64_t rank = 0;
    std::vector<float> a;  ///< shape: [rank, in]
    std::vector<float> b;  ///< shape: [out, rank], times the scale
};

inline std::vector<float> numbers_of(const ggml_tensor& tensor) {
    std::vector<float> numbers(static_cast<std::size_t>(ggml_nelements(&tensor)));
    if (tensor.type == GGML_TYPE_F16) {
        ggml_fp16_to_fp32_row(static_cast<const ggml_fp16_t*>(tensor.data), numbers.data(),
                              ggml_nelements(&tensor));
    } else {
        std::memcpy(numbers.data(), tensor.data, numbers.size() * sizeof(float));
    }
    return numbers;
}

/// Reads one file's factors, with its alpha and the request's scale in b.
inline std::map<std::string, PlainFactors> factors_of(const AdapterUse& use) {
    ggml_context* tensors = nullptr;
    gguf_context* file =
        gguf_init_from_file(use.file.c_str(), {.no_alloc = false, .ctx = &tensors});
    const float alpha = gguf_get_val_f32(file, gguf_find_key(file, "adapter.lora.alpha"));
    std::map<std::string, PlainFactors> found;
    for (ggml_tensor* tensor = ggml_get_first_tensor(tensors); tensor != nullptr;
         tensor = ggml_get_next_tensor(tensors, tensor)) {
        const std::string name = ggml_get_name(tensor);
        if (!name.ends_with(".lora_a") && !name.ends_with(".lora_b")) continue;
        PlainFactors& factors = found[name.substr(0, name.size() - 7)];
        if (name.ends_with("a")) {
            factors.in = tensor->ne[0];
            factors.rank = tensor->ne[1];
            factors.a = numbers_of(*tensor);
        } else {
            factors.out = tensor->ne[1];
            factors.b = numbers_of(*tensor);
            const float scale = use.scale * alpha / static_cast<float>(tensor->ne[0]);
            for (float& number : factors.b)
                number *= scale;
        }
    }
    gguf_free(file);
    ggml_free(tensors);
    return found;
}

/// The ranks of all, side by side.
inline PlainFactors side_by_side(const PlainFactors& left, const PlainFactors& right) {
    if (left.rank == 0) return right;
    PlainFactors both = left;
    both.rank += right.rank;
    both.a.insert(both.a.end(), right.a.begin(), right.a.end());
    both.b.clear();
    for (std::int64_t o = 0; o < left.out; ++o) {
        both.b.insert(both.b.end(), left.b.begin() + o * left.rank,
                      left.b.begin() + (o + 1) * left.rank);
        both.b.insert(both.b.end(), right.b.begin() + o * right.rank,
                      right.b.begin() + (o + 1) * right.rank);
    }
    return both;
}

inline AdapterUse write_sum(const TestFolder& folder, const std::string& name,
                            const std::vector<AdapterUse>& uses) {
    std::map<std::string, PlainFactors> sum;
    for (const AdapterUse& use : uses)
        for (const auto& [weight, factors] : factors_of(use))
            sum[weight] = side_by_side(sum[weight], factors);
    ggml_context* tensors =
        ggml_init({.mem_size = 64U << 20U, .mem_buffer = nullptr, .no_alloc = false});
    gguf_context* file = gguf_init_empty();
    gguf_set_val_str(file, "general.type", "adapter");
    gguf_set_val_str(file, "general.architecture", "llama");
    gguf_set_val_str(file, "adapter.type", "lora");
    gguf_set_val_f32(file, "adapter.lora.alpha", 0);  // no scale of its own
    const auto add = [&](const std::string& tensor_name, std::int64_t columns, std::int64_t rows,
                         const std::vector<float>& numbers) {
        ggml_tensor* tensor = ggml_new_tensor_2d(tensors, GGML_TYPE_F32, columns, rows);
        ggml_set_name(tensor, tensor_name.c_str());
        std::memcpy(tensor->data, numbers.data(), numbers.size() * sizeof(float));
        gguf_add_tensor(file, tensor);
    };
    for (const auto& [weight, factors] : sum) {
        add(weight + ".lora_a", factors.in, factors.rank, factors.a);
        add(weight + ".lora_b", factors.rank, factors.out, factors.b);
    }
    const fs::path path = folder.path() / (name + ".gguf");
    gguf_write_to_file(file, path.c_str(), false);
    gguf_free(file);
    ggml_free(tensors);
    return {.id = name, .hash = name, .file = path, .scale = 1, .pinned = false};
}

}  // namespace molly::engine::testing
