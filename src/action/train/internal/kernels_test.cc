#include "train/internal/kernels.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "train/internal/random.h"

namespace molly::train {
namespace {

std::vector<float> random_floats(std::size_t count, std::uint64_t seed) {
    Random random(seed);
    std::vector<float> out(count);
    for (float& value : out)
        value = static_cast<float>(random.normal() * 3);
    return out;
}

TEST(Kernels, the_chosen_set_agrees_with_the_baseline) {
    const auto gate = random_floats(1000, 1);
    const auto up = random_floats(1000, 2);
    const auto dout = random_floats(1000, 3);
    std::vector<float> results[2];
    const Kernels* sets[] = {&baseline_kernels(), &kernels()};
    for (int i = 0; i < 2; ++i) {
        auto out = dout;
        std::vector<float> dgate(1000);
        std::vector<float> dup(1000);
        sets[i]->swiglu_backward(1000, gate.data(), up.data(), out.data(), dgate.data(),
                                 dup.data());
        for (const auto* part : {&out, &dgate, &dup})
            results[i].insert(results[i].end(), part->begin(), part->end());
    }
    for (std::size_t i = 0; i < results[0].size(); ++i)
        EXPECT_NEAR(results[0][i], results[1][i], 1e-5F * (1 + std::abs(results[0][i])));
}

TEST(Kernels, cross_entropy_is_that_of_double_precision) {
    constexpr std::size_t width = 501;
    auto logits = random_floats(width, 4);
    const auto kept = logits;
    const std::int32_t target = 77;
    const float weight = 1;
    double total = 0;
    for (const float logit : kept)
        total += std::exp(static_cast<double>(logit));
    const double wanted = std::log(total) - static_cast<double>(kept[77]);
    const double got = kernels().cross_entropy(1, width, width, 0, &target, &weight, logits.data());
    EXPECT_NEAR(got, wanted, 1e-5);
    for (std::size_t i = 0; i < width; ++i) {
        const double share = std::exp(static_cast<double>(kept[i])) / total;
        EXPECT_NEAR(static_cast<double>(logits[i]), share - (i == 77 ? 1.0 : 0.0), 1e-6);
    }
}

TEST(Kernels, adam_moves_as_the_paper_says) {
    float weight = 0.5F;
    float first = 0.1F;
    float second = 0.02F;
    const float gradient = 2;
    AdamStep step;
    step.rate = 0.01F;
    step.decay = 0.1F;
    step.beta_1 = 0.9F;
    step.beta_2 = 0.99F;
    step.correction_1 = 2;
    step.correction_2 = 5;
    step.gradient_scale = 0.5F;
    kernels().adam(1, step, &gradient, &weight, &first, &second);
    const double m = 0.9 * 0.1 + 0.1 * 1;
    const double v = 0.99 * 0.02 + 0.01 * 1;
    EXPECT_NEAR(first, m, 1e-7);
    EXPECT_NEAR(second, v, 1e-7);
    EXPECT_NEAR(weight, 0.5 - 0.01 * (2 * m / (std::sqrt(5 * v) + 1e-8) + 0.1 * 0.5), 1e-6);
}

}  // namespace
}  // namespace molly::train
