#include "train/internal/gguf_file.h"

#include <algorithm>
#include <cmath>

#include <ggml-backend.h>
#include <gtest/gtest.h>
#include <llama.h>

#include "train/internal/matmul.h"
#include "train/internal/pass.h"
#include "train/internal/test_batch.h"
#include "train/internal/test_folder.h"

namespace molly::train {
namespace {

/// A vocabulary of 512 tokens out of made-up words.
Tokenizer small_tokenizer() {
    const TestFolder folder;
    const std::string letters = "abcdefgilmnoprstuvz";
    std::string text;
    for (std::size_t i = 0; i < 20'000; ++i) {
        const std::size_t word = i * 37 % 900;
        text += {letters[word % 19], "aeiou"[word % 5], letters[word / 19 % 19],
                 "aeiou"[word / 7 % 5], ' '};
    }
    auto made = Tokenizer::train({folder.write("text.txt", text)}, 512);
    EXPECT_TRUE(made) << made.error().message();
    return *std::move(made);
}

Shape model_shape(bool tied) {
    Shape shape;
    shape.vocabulary = 512;
    shape.embed = 64;
    shape.layers = 2;
    shape.heads = 4;
    shape.key_heads = 2;
    shape.feed_forward = 96;
    shape.context = 40;
    shape.tied = tied;
    return shape;
}

/// What llama.cpp itself makes of a model file: logits of every token, [tokens, vocabulary].
std::vector<float> llama_logits(const std::filesystem::path& file,
                                const std::vector<std::int32_t>& tokens) {
    llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
    ggml_backend_load_all_from_path(MOLLY_LLAMA_LIBRARIES);
    llama_model* model = llama_model_load_from_file(file.c_str(), llama_model_default_params());
    if (model == nullptr) return {};
    llama_context_params params = llama_context_default_params();
    params.n_ctx = 64;
    params.n_threads = params.n_threads_batch = 1;
    // Its flash attention rounds to half precision.
    params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    params.type_k = params.type_v = GGML_TYPE_F32;
    llama_context* context = llama_init_from_model(model, params);
    llama_batch batch = llama_batch_init(static_cast<std::int32_t>(tokens.size()), 0, 1);
    batch.n_tokens = static_cast<std::int32_t>(tokens.size());
    for (std::size_t t = 0; t < tokens.size(); ++t) {
        batch.token[t] = tokens[t];
        batch.pos[t] = static_cast<llama_pos>(t);
        batch.n_seq_id[t] = 1;
        batch.seq_id[t][0] = 0;
        batch.logits[t] = 1;
    }
    std::vector<float> out;
    const auto words = static_cast<std::size_t>(llama_vocab_n_tokens(llama_model_get_vocab(model)));
    if (llama_decode(context, batch) == 0) {
        for (std::size_t t = 0; t < tokens.size(); ++t) {
            const float* row = llama_get_logits_ith(context, static_cast<std::int32_t>(t));
            out.insert(out.end(), row, row + words);
        }
    }
    llama_batch_free(batch);
    llama_free(context);
    llama_model_free(model);
    return out;
}

/// The largest difference between llama.cpp's logits and the trainer's, beside the largest logit.
double compare(const Shape& shape, WeightType type) {
    const TestFolder folder;
    keep_matmul_to_this_thread();
    const Layout layout(shape);
    std::vector<float> weights(layout.size);
    Random random(3);
    for (const Tensor& tensor : layout.tensors) {
        for (std::size_t i = 0; i < tensor.size(); ++i) {
            weights[tensor.offset + i] =
                static_cast<float>(random.normal() * 0.15 + (tensor.rows == 1 ? 1.0 : 0.0));
        }
    }
    const auto file = folder.path() / "model.gguf";
    ModelCard card;
    card.name = "test";
    const auto written = write_gguf_model(file, shape, weights, small_tokenizer(), type, card);
    EXPECT_TRUE(written) << written.error().message();
    const auto owned = random_batch(shape, 1, 40, 8, 40);
    Pass pass(shape, layout, 1);
    const auto mine = pass.logits(weights, owned.view());
    const auto theirs = llama_logits(file, owned.input);
    EXPECT_EQ(mine.size(), theirs.size());
    if (mine.size() != theirs.size()) return 1;
    double difference = 0;
    double largest = 0;
    for (std::size_t i = 0; i < mine.size(); ++i) {
        difference = std::max(difference, std::abs(static_cast<double>(mine[i] - theirs[i])));
        largest = std::max(largest, std::abs(static_cast<double>(mine[i])));
    }
    return difference / largest;
}

TEST(GgufFile, llama_cpp_computes_the_same_logits) {
    EXPECT_LT(compare(model_shape(true), WeightType::f32), 1e-4);
}

TEST(GgufFile, a_separate_head_is_written_too) {
    EXPECT_LT(compare(model_shape(false), WeightType::f32), 1e-4);
}

TEST(GgufFile, half_precision_is_close) {
    EXPECT_LT(compare(model_shape(true), WeightType::f16), 5e-3);
}

TEST(GgufFile, q8_0_is_near) {
    EXPECT_LT(compare(model_shape(true), WeightType::q8_0), 0.1);
}

}  // namespace
}  // namespace molly::train
