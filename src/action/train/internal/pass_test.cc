#include "train/internal/pass.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "train/internal/lanes.h"
#include "train/internal/matmul.h"
#include "train/internal/reference_model.h"
#include "train/internal/test_batch.h"

namespace molly::train {
namespace {

/// Larger than training starts with, so that every part matters.
std::vector<float> lively_weights(const Layout& layout) {
    Random random(7);
    std::vector<float> weights(layout.size);
    for (float& weight : weights)
        weight = static_cast<float>(random.normal() * 0.3);
    return weights;
}

struct Gradients {
    double loss = 0;
    std::vector<float> values;
};

Gradients gradients_of(const Shape& shape, const std::vector<float>& weights, const Batch& batch,
                       float z_loss) {
    keep_matmul_to_this_thread();
    const Layout layout(shape);
    Pass pass(shape, layout, batch.sequences);
    Gradients out;
    out.values.resize(layout.size);
    out.loss = pass.train(weights, batch, z_loss, out.values);
    return out;
}

/// Compares the gradient of every tensor with central differences of the double-precision
/// reference, at up to 24 places of each.
void compare_with_differences(const Shape& shape, float z_loss) {
    const Layout layout(shape);
    const auto weights = lively_weights(layout);
    const auto owned = random_batch(shape, 2, 21, 3);
    const Batch batch = owned.view();
    const Gradients got = gradients_of(shape, weights, batch, z_loss);
    const ReferenceModel reference(shape, layout);
    std::vector<double> exact(weights.begin(), weights.end());
    EXPECT_NEAR(got.loss, reference.loss(exact, batch, static_cast<double>(z_loss)),
                1e-5 * got.loss);
    Random random(11);
    for (const Tensor& tensor : layout.tensors) {
        double largest = 1e-3;
        for (std::size_t i = 0; i < tensor.size(); ++i)
            largest =
                std::max(largest, std::abs(static_cast<double>(got.values[tensor.offset + i])));
        for (int probe = 0; probe < 24; ++probe) {
            const std::size_t at = tensor.offset + random.below(tensor.size());
            constexpr double step = 1e-5;
            const double kept = exact[at];
            exact[at] = kept + step;
            const double above = reference.loss(exact, batch, static_cast<double>(z_loss));
            exact[at] = kept - step;
            const double below = reference.loss(exact, batch, static_cast<double>(z_loss));
            exact[at] = kept;
            EXPECT_NEAR(static_cast<double>(got.values[at]), (above - below) / (2 * step),
                        2e-4 * largest)
                << tensor.name << " at " << at - tensor.offset;
        }
    }
}

TEST(Pass, gradients_agree_with_finite_differences) {
    compare_with_differences(small_shape(true, 2), 0);
}

TEST(Pass, gradients_agree_without_sharing_keys_or_tables) {
    compare_with_differences(small_shape(false, 4), 0);
}

TEST(Pass, gradients_agree_with_a_z_loss) {
    compare_with_differences(small_shape(true, 1), 1e-2F);
}

TEST(Pass, gradients_agree_over_several_blocks_of_attention) {
    Shape shape = small_shape();
    shape.layers = 1;
    const Layout layout(shape);
    const auto weights = lively_weights(layout);
    const auto owned = random_batch(shape, 1, 80, 5, 70);
    const Gradients got = gradients_of(shape, weights, owned.view(), 0);
    const ReferenceModel reference(shape, layout);
    std::vector<double> exact(weights.begin(), weights.end());
    // Along the gradient itself the loss must rise by its squared length.
    double square = 0;
    for (const float g : got.values)
        square += static_cast<double>(g) * static_cast<double>(g);
    const double step = 1e-5 / std::sqrt(square);
    const auto moved = [&](double by) {
        std::vector<double> there = exact;
        for (std::size_t i = 0; i < there.size(); ++i)
            there[i] += by * static_cast<double>(got.values[i]);
        return reference.loss(there, owned.view(), 0);
    };
    EXPECT_NEAR((moved(step) - moved(-step)) / (2 * step) / square, 1.0, 1e-4);
}

TEST(Pass, bf16_products_give_nearly_the_same_gradient) {
    const Shape shape = small_shape();
    keep_matmul_to_this_thread();
    const Layout layout(shape);
    const auto weights = make_weights(shape, layout, 3);
    const auto owned = random_batch(shape, 2, 80, 5, 70);
    std::vector<float> gradients[2];
    double losses[2] = {};
    const Precision precisions[] = {Precision::f32, Precision::bf16};
    for (int i = 0; i < 2; ++i) {
        Pass pass(shape, layout, 2, precisions[i]);
        gradients[i].resize(layout.size);
        losses[i] = pass.train(weights, owned.view(), 0, gradients[i]);
    }
    double difference = 0;
    double square = 0;
    for (std::size_t i = 0; i < layout.size; ++i) {
        difference += std::pow(
            static_cast<double>(gradients[0][i]) - static_cast<double>(gradients[1][i]), 2);
        square += std::pow(static_cast<double>(gradients[0][i]), 2);
    }
    EXPECT_NEAR(losses[1], losses[0], 2e-3 * losses[0]);
    // 8 bits of mantissa: each factor is off by up to 1/512, and the errors partly cancel.
    EXPECT_LT(std::sqrt(difference / square), 2e-2);
    EXPECT_GT(difference, 0);
}

TEST(Pass, a_token_without_weight_changes_nothing) {
    const Shape shape = small_shape();
    const Layout layout(shape);
    const auto weights = lively_weights(layout);
    auto owned = random_batch(shape, 1, 20, 3);
    owned.weight.assign(20, 1.0F);
    owned.weight[13] = 0;
    const Gradients before = gradients_of(shape, weights, owned.view(), 0);
    owned.target[13] = (owned.target[13] + 1) % 37;
    const Gradients after = gradients_of(shape, weights, owned.view(), 0);
    EXPECT_EQ(before.loss, after.loss);
    EXPECT_EQ(before.values, after.values);
}

TEST(Pass, packed_documents_do_not_see_each_other) {
    const Shape shape = small_shape();
    const Layout layout(shape);
    keep_matmul_to_this_thread();
    const auto weights = lively_weights(layout);
    auto owned = random_batch(shape, 1, 20, 3, 9);
    Pass pass(shape, layout, 1);
    const auto before = pass.logits(weights, owned.view());
    owned.input[4] = (owned.input[4] + 1) % 37;
    const auto after = pass.logits(weights, owned.view());
    const auto second = [](const std::vector<float>& all) {
        return std::vector<float>(all.begin() + 9 * 37, all.end());
    };
    EXPECT_NE(before, after);
    EXPECT_EQ(second(before), second(after));
}

}  // namespace
}  // namespace molly::train
