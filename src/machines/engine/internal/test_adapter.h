#pragma once
// Random LoRA files for tests.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <ggml.h>
#include <gguf.h>

#include "engine/engine.h"

namespace molly::engine::testing {

namespace fs = std::filesystem;

/// A folder that goes away.
class TestFolder {
public:
    TestFolder() {
        std::random_device random;
        path_ = fs::temp_directory_path() /
                ("molly-engine-" + std::to_string(random()) + std::to_string(random()));
        fs::create_directory(path_);
    }
    TestFolder(const TestFolder&) = delete;
    TestFolder& operator=(const TestFolder&) = delete;
    ~TestFolder() { fs::remove_all(path_); }
    const fs::path& path() const noexcept { return path_; }

private:
    fs::path path_;
};

struct TestWeight {
    std::string name;
    std::int64_t in = 0;
    std::int64_t out = 0;
};

/// Every linear layer of the test model, but for its head.
inline std::vector<TestWeight> all_weights() {
    std::vector<TestWeight> weights;
    for (const std::string layer : {"blk.0.", "blk.1."}) {
        for (const char* square : {"attn_q", "attn_k", "attn_v", "attn_output"})
            weights.push_back({layer + square + ".weight", 96, 96});
        weights.push_back({layer + "ffn_gate.weight", 96, 128});
        weights.push_back({layer + "ffn_up.weight", 96, 128});
        weights.push_back({layer + "ffn_down.weight", 128, 96});
    }
    return weights;
}

struct TestAdapter {
    std::uint32_t seed = 1;
    std::int64_t rank = 8;
    float strength = 0.3F;
    float alpha = 16;
    ggml_type type = GGML_TYPE_F16;
    std::vector<TestWeight> weights = all_weights();
};

/// Writes one; its hash is its name.
inline AdapterUse write_adapter(const TestFolder& folder, const std::string& name,
                                const TestAdapter& wanted) {
    std::mt19937 random(wanted.seed);
    std::normal_distribution<float> normal(0, wanted.strength);
    ggml_init_params memory{.mem_size = 64U << 20U, .mem_buffer = nullptr, .no_alloc = false};
    ggml_context* tensors = ggml_init(memory);
    gguf_context* file = gguf_init_empty();
    gguf_set_val_str(file, "general.type", "adapter");
    gguf_set_val_str(file, "general.architecture", "llama");
    gguf_set_val_str(file, "adapter.type", "lora");
    gguf_set_val_f32(file, "adapter.lora.alpha", wanted.alpha);
    const auto add = [&](const std::string& tensor_name, std::int64_t columns, std::int64_t rows) {
        ggml_tensor* tensor = ggml_new_tensor_2d(tensors, wanted.type, columns, rows);
        ggml_set_name(tensor, tensor_name.c_str());
        std::vector<float> numbers(static_cast<std::size_t>(columns * rows));
        // Numbers that all three types hold, so that a file of any of them is the same adapter.
        for (float& number : numbers)
            number = ggml_bf16_to_fp32(ggml_fp32_to_bf16(normal(random)));
        const auto count = static_cast<std::int64_t>(numbers.size());
        if (wanted.type == GGML_TYPE_F16) {
            ggml_fp32_to_fp16_row(numbers.data(), static_cast<ggml_fp16_t*>(tensor->data), count);
        } else if (wanted.type == GGML_TYPE_BF16) {
            ggml_fp32_to_bf16_row(numbers.data(), static_cast<ggml_bf16_t*>(tensor->data), count);
        } else {
            std::copy(numbers.begin(), numbers.end(), static_cast<float*>(tensor->data));
        }
        gguf_add_tensor(file, tensor);
    };
    for (const TestWeight& weight : wanted.weights) {
        add(weight.name + ".lora_a", weight.in, wanted.rank);
        add(weight.name + ".lora_b", wanted.rank, weight.out);
    }
    const fs::path path = folder.path() / (name + ".gguf");
    gguf_write_to_file(file, path.c_str(), false);
    gguf_free(file);
    ggml_free(tensors);
    return {.id = name, .hash = name, .file = path, .scale = 1, .pinned = false};
}

}  // namespace molly::engine::testing
