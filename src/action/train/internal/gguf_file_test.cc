#include "train/internal/gguf_file.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "train/internal/matmul.h"
#include "train/internal/pass.h"
#include "train/internal/test_batch.h"
#include "train/internal/test_folder.h"
#include "train/internal/test_llama.h"

namespace molly::train {
namespace {

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
