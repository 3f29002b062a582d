// Writes a model of the shape of Qwen2.5-0.5B with random weights in Q4_0, and LoRA adapters for
// it: speed without a download.
//
//   make_models VOCABULARY.gguf FOLDER [ADAPTERS [RANK]]
//
// FOLDER gets base.gguf and adapter-NN.gguf. The vocabulary is llama.cpp's qwen2 one, without
// weights. As in a file that llama.cpp quantizes, embedding and head are one Q8_0 tensor, the rest
// Q4_0.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "ggml.h"
#include "gguf.h"

namespace {

constexpr std::int64_t embed = 896;
constexpr std::int64_t layers = 24;
constexpr std::int64_t heads = 14;
constexpr std::int64_t heads_kv = 2;
constexpr std::int64_t feed_forward = 4864;
constexpr std::int64_t kv_width = embed / heads * heads_kv;

struct Weight {
    const char* name;
    std::int64_t in;
    std::int64_t out;
};
constexpr Weight linears[] = {
    {"attn_q", embed, embed},          {"attn_k", embed, kv_width},
    {"attn_v", embed, kv_width},       {"attn_output", embed, embed},
    {"ffn_gate", embed, feed_forward}, {"ffn_up", embed, feed_forward},
    {"ffn_down", feed_forward, embed},
};

class Writer {
public:
    Writer(gguf_context* file, std::uint64_t bytes, std::uint32_t seed)
        : file_(file),
          tensors_(ggml_init({.mem_size = bytes, .mem_buffer = nullptr, .no_alloc = false})),
          random_(seed) {}
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;
    ~Writer() { ggml_free(tensors_); }

    void constant(const std::string& name, std::int64_t length, float value) {
        ggml_tensor* tensor = ggml_new_tensor_1d(tensors_, GGML_TYPE_F32, length);
        auto* numbers = static_cast<float*>(tensor->data);
        for (std::int64_t i = 0; i < length; ++i)
            numbers[i] = value;
        enter(tensor, name);
    }
    /// Random numbers of about this deviation. The quants are drawn directly: a matrix of normal
    /// numbers quantized would not be another load.
    void matrix(const std::string& name, ggml_type type, std::int64_t in, std::int64_t out,
                float deviation) {
        ggml_tensor* tensor = ggml_new_tensor_2d(tensors_, type, in, out);
        auto* bytes = static_cast<std::uint8_t*>(tensor->data);
        const std::size_t size = ggml_nbytes(tensor);
        if (type == GGML_TYPE_F16) {
            std::normal_distribution<float> normal(0, deviation);
            auto* halves = static_cast<ggml_fp16_t*>(tensor->data);
            for (std::int64_t i = 0; i < in * out; ++i)
                halves[i] = ggml_fp32_to_fp16(normal(random_));
        } else {
            for (std::size_t at = 0; at < size; at += 8) {
                const std::uint64_t word = random_();
                std::memcpy(bytes + at, &word, size - at < 8 ? size - at : 8);
            }
            // Both kinds of block begin with their scale, in half precision.
            const std::size_t block = ggml_type_size(type);
            const float scale = deviation / (type == GGML_TYPE_Q4_0 ? 4.6F : 74.0F);
            const ggml_fp16_t half = ggml_fp32_to_fp16(scale);
            for (std::size_t at = 0; at < size; at += block)
                std::memcpy(bytes + at, &half, sizeof(half));
        }
        enter(tensor, name);
    }

private:
    void enter(ggml_tensor* tensor, const std::string& name) {
        ggml_set_name(tensor, name.c_str());
        gguf_add_tensor(file_, tensor);
    }

    gguf_context* file_;
    ggml_context* tensors_;
    std::mt19937_64 random_;
};

int write_base(const char* vocabulary, const std::string& path) {
    gguf_context* words = gguf_init_from_file(vocabulary, {.no_alloc = true, .ctx = nullptr});
    if (words == nullptr) return 1;
    const auto tokens = gguf_get_arr_n(words, gguf_find_key(words, "tokenizer.ggml.tokens"));
    gguf_context* file = gguf_init_empty();
    gguf_set_kv(file, words);
    gguf_set_val_str(file, "general.architecture", "qwen2");
    gguf_set_val_str(file, "general.name", "bench-0.5b");
    gguf_set_val_u32(file, "general.file_type", 2);
    gguf_set_val_u32(file, "qwen2.block_count", layers);
    gguf_set_val_u32(file, "qwen2.context_length", 32768);
    gguf_set_val_u32(file, "qwen2.embedding_length", embed);
    gguf_set_val_u32(file, "qwen2.feed_forward_length", feed_forward);
    gguf_set_val_u32(file, "qwen2.attention.head_count", heads);
    gguf_set_val_u32(file, "qwen2.attention.head_count_kv", heads_kv);
    gguf_set_val_f32(file, "qwen2.attention.layer_norm_rms_epsilon", 1e-6F);
    gguf_set_val_f32(file, "qwen2.rope.freq_base", 1e6F);
    Writer writer(file, 900ULL << 20U, 1);
    writer.matrix("token_embd.weight", GGML_TYPE_Q8_0, embed, static_cast<std::int64_t>(tokens),
                  0.02F);
    writer.constant("output_norm.weight", embed, 1);
    for (std::int64_t layer = 0; layer < layers; ++layer) {
        const std::string prefix = "blk." + std::to_string(layer) + ".";
        writer.constant(prefix + "attn_norm.weight", embed, 1);
        writer.constant(prefix + "ffn_norm.weight", embed, 1);
        writer.constant(prefix + "attn_q.bias", embed, 0);
        writer.constant(prefix + "attn_k.bias", kv_width, 0);
        writer.constant(prefix + "attn_v.bias", kv_width, 0);
        for (const Weight& weight : linears)
            writer.matrix(prefix + weight.name + ".weight", GGML_TYPE_Q4_0, weight.in, weight.out,
                          0.02F);
    }
    const bool written = gguf_write_to_file(file, path.c_str(), false);
    gguf_free(file);
    gguf_free(words);
    return written ? 0 : 1;
}

int write_adapter(const std::string& path, std::int64_t rank, std::uint32_t seed) {
    gguf_context* file = gguf_init_empty();
    gguf_set_val_str(file, "general.type", "adapter");
    gguf_set_val_str(file, "general.architecture", "qwen2");
    gguf_set_val_str(file, "adapter.type", "lora");
    gguf_set_val_f32(file, "adapter.lora.alpha", static_cast<float>(2 * rank));
    Writer writer(file, (40ULL << 20U) * static_cast<std::uint64_t>(rank) / 16 + (8U << 20U), seed);
    for (std::int64_t layer = 0; layer < layers; ++layer) {
        for (const Weight& weight : linears) {
            const std::string name = "blk." + std::to_string(layer) + "." + weight.name + ".weight";
            writer.matrix(name + ".lora_a", GGML_TYPE_F16, weight.in, rank, 0.02F);
            writer.matrix(name + ".lora_b", GGML_TYPE_F16, rank, weight.out, 0.02F);
        }
    }
    const bool written = gguf_write_to_file(file, path.c_str(), false);
    gguf_free(file);
    return written ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
    if (count < 3) {
        std::fputs("usage: make_models VOCABULARY.gguf FOLDER [ADAPTERS [RANK]]\n", stderr);
        return 2;
    }
    const std::string folder = words[2];
    const int adapters = count > 3 ? std::atoi(words[3]) : 8;
    const std::int64_t rank = count > 4 ? std::atoi(words[4]) : 16;
    const std::string base = folder + "/base.gguf";
    if (!std::filesystem::exists(base) && write_base(words[1], base) != 0) return 1;
    for (int i = 0; i < adapters; ++i) {
        char name[32];
        std::snprintf(name, sizeof(name), "/adapter-%02d.gguf", i);
        if (!std::filesystem::exists(folder + name) &&
            write_adapter(folder + name, rank, static_cast<std::uint32_t>(100 + i)) != 0)
            return 1;
    }
    return 0;
}
