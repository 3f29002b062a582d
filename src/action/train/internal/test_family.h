#pragma once
// Small models with random weights of every family that adapters are trained on.
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <ggml.h>
#include <gguf.h>
#include <gtest/gtest.h>

#include "train/internal/gguf_file.h"
#include "train/internal/random.h"
#include "train/internal/test_llama.h"

namespace molly::train {

/// What one family has that others lack.
struct TestFamily {
    std::string name = "llama";
    std::uint32_t layers = 2;
    std::int64_t head_width = 16;
    bool biases = false;
    bool head_norms = false;
    bool post_norms = false;
    bool tied = true;
    bool slow_frequencies = false;
    std::uint32_t window = 0;
};

inline std::vector<TestFamily> test_families() {
    TestFamily llama;
    llama.tied = false;
    llama.slow_frequencies = true;
    TestFamily qwen2;
    qwen2.name = "qwen2";
    qwen2.biases = true;
    TestFamily qwen3;
    qwen3.name = "qwen3";
    qwen3.head_norms = true;
    qwen3.head_width = 32;  // four heads are wider than the model
    TestFamily gemma3;
    gemma3.name = "gemma3";
    gemma3.layers = 7;  // the sixth looks back at everything
    gemma3.head_norms = gemma3.post_norms = true;
    gemma3.head_width = 32;
    gemma3.window = 16;
    return {llama, qwen2, qwen3, gemma3};
}

/// Writes one family's model, 512 tokens and 64 wide; its matrices are of `type`.
class TestModel {
public:
    TestModel(const TestFamily& family, ggml_type type) : family_(family), type_(type) {
        ggml_init_params params{};
        params.mem_size = 64U << 20U;
        tensors_.reset(ggml_init(params));
        const Tokenizer tokenizer = small_tokenizer();
        const auto vocabulary = folder_.path() / "vocabulary.gguf";
        EXPECT_TRUE(write_gguf_vocabulary(vocabulary, tokenizer));
        gguf_init_params reading{};
        reading.no_alloc = true;
        file_.reset(gguf_init_from_file(vocabulary.c_str(), reading));
        describe();
        fill();
        EXPECT_TRUE(gguf_write_to_file(file_.get(), path().c_str(), false));
    }

    std::filesystem::path path() const { return folder_.path() / "model.gguf"; }
    std::filesystem::path beside(const char* name) const { return folder_.path() / name; }

private:
    void describe() {
        const auto key = [this](const char* part) { return family_.name + "." + part; };
        const auto number = [&](const char* part, std::uint32_t value) {
            gguf_set_val_u32(file_.get(), key(part).c_str(), value);
        };
        const auto width = static_cast<std::uint32_t>(family_.head_width);
        gguf_set_val_str(file_.get(), "general.type", "model");
        gguf_set_val_str(file_.get(), "general.architecture", family_.name.c_str());
        gguf_set_val_str(file_.get(), "general.name", "test");
        number("context_length", 128);
        number("embedding_length", 64);
        number("block_count", family_.layers);
        number("feed_forward_length", 96);
        number("attention.head_count", 4);
        number("attention.head_count_kv", 2);
        number("attention.key_length", width);
        number("attention.value_length", width);
        number("rope.dimension_count", width);
        if (family_.window > 0) number("attention.sliding_window", family_.window);
        gguf_set_val_f32(file_.get(), key("attention.layer_norm_rms_epsilon").c_str(), 1e-6F);
        gguf_set_val_f32(file_.get(), key("rope.freq_base").c_str(), 100'000.0F);
    }

    void add(const std::string& name, std::int64_t columns, std::int64_t rows, double mean,
             double deviation) {
        ggml_tensor* made = rows == 0 ? ggml_new_tensor_1d(tensors_.get(), GGML_TYPE_F32, columns)
                                      : ggml_new_tensor_2d(tensors_.get(), type_, columns, rows);
        ggml_set_name(made, name.c_str());
        std::vector<float> values(static_cast<std::size_t>(ggml_nelements(made)));
        for (float& value : values)
            value = static_cast<float>(mean + random_.normal() * deviation);
        if (made->type == GGML_TYPE_F32) {
            std::copy(values.begin(), values.end(), static_cast<float*>(made->data));
        } else {
            ggml_quantize_chunk(type_, values.data(), made->data, 0, rows, columns, nullptr);
        }
        gguf_add_tensor(file_.get(), made);
    }

    void fill() {
        const std::int64_t query = 4 * family_.head_width;
        const std::int64_t keys = 2 * family_.head_width;
        add("token_embd.weight", 64, 512, 0, 0.3);
        add("output_norm.weight", 64, 0, 1, 0.2);
        if (!family_.tied) add("output.weight", 64, 512, 0, 0.2);
        if (family_.slow_frequencies) add("rope_freqs.weight", family_.head_width / 2, 0, 3, 0.5);
        for (std::uint32_t i = 0; i < family_.layers; ++i) {
            const auto name = [i](const char* part, const char* kind = "weight") {
                return fmt::format("blk.{}.{}.{}", i, part, kind);
            };
            add(name("attn_norm"), 64, 0, 1, 0.2);
            add(name("attn_q"), 64, query, 0, 0.15);
            add(name("attn_k"), 64, keys, 0, 0.15);
            add(name("attn_v"), 64, keys, 0, 0.15);
            add(name("attn_output"), query, 64, 0, 0.15);
            add(name("ffn_norm"), 64, 0, 1, 0.2);
            add(name("ffn_gate"), 64, 96, 0, 0.15);
            add(name("ffn_up"), 64, 96, 0, 0.15);
            add(name("ffn_down"), 96, 64, 0, 0.15);
            if (family_.biases) {
                add(name("attn_q", "bias"), query, 0, 0, 0.5);
                add(name("attn_k", "bias"), keys, 0, 0, 0.5);
                add(name("attn_v", "bias"), keys, 0, 0, 0.5);
            }
            if (family_.head_norms) {
                add(name("attn_q_norm"), family_.head_width, 0, 1, 0.2);
                add(name("attn_k_norm"), family_.head_width, 0, 1, 0.2);
            }
            if (family_.post_norms) {
                add(name("post_attention_norm"), 64, 0, 1, 0.2);
                add(name("post_ffw_norm"), 64, 0, 1, 0.2);
            }
        }
    }

    TestFamily family_;
    ggml_type type_;
    TestFolder folder_;
    Random random_{3};
    std::unique_ptr<gguf_context, decltype(&gguf_free)> file_{nullptr, gguf_free};
    std::unique_ptr<ggml_context, decltype(&ggml_free)> tensors_{nullptr, ggml_free};
};

}  // namespace molly::train
