#include "engine/internal/logits.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace molly::engine {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<float> random_logits(std::size_t count, float spread, std::uint32_t seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(-3, spread);
    std::vector<float> logits(count);
    for (float& logit : logits)
        logit = normal(random);
    return logits;
}

TEST(Logits, the_normalizer_is_that_of_double_precision) {
    for (const std::size_t count : {1U, 15U, 16U, 17U, 1000U, 151'936U}) {
        for (const float spread : {0.01F, 1.0F, 8.0F, 40.0F}) {
            const auto logits = random_logits(count, spread, static_cast<std::uint32_t>(count));
            const double most = *std::ranges::max_element(logits);
            double sum = 0;
            for (const float logit : logits)
                sum += std::exp(static_cast<double>(logit) - most);
            const double expected = most + std::log(sum);
            EXPECT_NEAR(log_sum_exp(logits), expected, 2e-6 * std::max(1.0, std::abs(expected)))
                << count << " numbers, spread " << spread;
        }
    }
}

TEST(Logits, what_no_token_may_be_counts_for_nothing) {
    const std::vector<float> logits = {-INFINITY, 2, -INFINITY, 2};
    EXPECT_NEAR(log_sum_exp(logits), 2 + std::log(2.0F), 1e-6);
    EXPECT_EQ(largest_at(logits), 1U);
}

TEST(Logits, finds_the_first_of_the_largest) {
    for (const std::size_t count : {1U, 16U, 33U, 5000U}) {
        auto logits = random_logits(count, 2, 7);
        const auto expected = std::ranges::max_element(logits) - logits.begin();
        EXPECT_EQ(largest_at(logits), static_cast<std::size_t>(expected));
        logits.back() = logits[static_cast<std::size_t>(expected)];
        EXPECT_EQ(largest_at(logits), static_cast<std::size_t>(expected));
    }
    EXPECT_EQ(largest_at(std::vector<float>(20, NAN)), 0U);
}

TEST(Logits, lists_the_largest_first) {
    const std::vector<float> logits = {1, 5, 3, 5, -2};
    EXPECT_THAT(largest_places(logits, 3), ElementsAre(1, 3, 2));
    EXPECT_THAT(largest_places(logits, 9), ElementsAre(1, 3, 2, 0, 4));
    EXPECT_THAT(largest_places(logits, 0), IsEmpty());
}

}  // namespace
}  // namespace molly::engine
