#include "engine/internal/lora_kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include <ggml.h>
#include <gtest/gtest.h>

namespace molly::engine {
namespace {

/// One pair of random factors in both layouts.
struct Layer {
    Layer(std::uint32_t in, std::uint32_t out, std::uint32_t rank, std::mt19937& random) {
        std::normal_distribution<float> normal(0, 0.05F);
        const auto halves = [&](std::size_t count) {
            std::vector<std::uint16_t> numbers(count);
            for (auto& number : numbers)
                number = ggml_fp32_to_fp16(normal(random));
            return numbers;
        };
        a = halves(std::size_t{rank} * in);
        b = halves(std::size_t{out} * rank);
        const std::uint32_t padded = lora_padded_rank(rank);
        packed.resize(lora_numbers(in, out, padded));
        pack_lora_a(a.data(), in, rank, packed.data());
        pack_lora_b(b.data(), out, rank, packed.data() + std::size_t{padded} * in);
        pair = {.in = in,
                .out = out,
                .rank = padded,
                .scale = 2.0F / static_cast<float>(rank),
                .a = packed.data(),
                .b = packed.data() + std::size_t{padded} * in};
        a_bytes.resize(std::size_t{padded} * in);
        b_bytes.resize(std::size_t{padded} * out);
        a_steps.resize(padded);
        b_steps.resize(out);
        pack_lora_a(a.data(), in, rank, a_bytes.data(), a_steps.data());
        pack_lora_b(b.data(), out, rank, b_bytes.data(), b_steps.data());
        small = pair;
        small.a = small.b = nullptr;
        small.a_bytes = a_bytes.data();
        small.b_bytes = b_bytes.data();
        small.a_steps = a_steps.data();
        small.b_steps = b_steps.data();
        true_rank = rank;
    }
    /// The factors as bytes say them, in the order of the file.
    void round_to_bytes() {
        const auto round = [](std::vector<std::uint16_t>& rows, std::size_t columns) {
            for (auto row = rows.begin(); row != rows.end(); row += std::ptrdiff_t(columns)) {
                float largest = 0;
                for (std::size_t i = 0; i < columns; ++i)
                    largest =
                        std::max(largest, std::abs(ggml_fp16_to_fp32(row[std::ptrdiff_t(i)])));
                for (std::size_t i = 0; i < columns; ++i) {
                    auto& number = row[std::ptrdiff_t(i)];
                    const float steps = std::round(ggml_fp16_to_fp32(number) * 127 / largest);
                    number = ggml_fp32_to_fp16(steps * largest / 127);
                }
            }
        };
        round(a, pair.in);
        round(b, true_rank);
    }

    std::vector<std::uint16_t> a;
    std::vector<std::uint16_t> b;
    std::vector<std::uint16_t> packed;
    std::vector<std::int8_t> a_bytes;
    std::vector<std::int8_t> b_bytes;
    std::vector<float> a_steps;
    std::vector<float> b_steps;
    LoraPair pair;
    LoraPair small;  ///< the same in bytes
    std::uint32_t true_rank = 0;
};

/// The definition, in double precision and from the factors as they came.
double expected(const Layer& layer, const float* x, float scale, std::uint32_t o) {
    double sum = 0;
    for (std::uint32_t r = 0; r < layer.true_rank; ++r) {
        double inner = 0;
        for (std::uint32_t i = 0; i < layer.pair.in; ++i)
            inner += static_cast<double>(
                         ggml_fp16_to_fp32(layer.a[std::size_t{r} * layer.pair.in + i])) *
                     x[i];
        sum += inner * ggml_fp16_to_fp32(layer.b[std::size_t{o} * layer.true_rank + r]);
    }
    return sum * layer.pair.scale * scale;
}

std::vector<LoraKernelChoice> kernels() {
    std::vector<LoraKernelChoice> found = {{lora_reference, "plain"}};
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c"))
        found.push_back({lora_avx2, "avx2"});
    if (__builtin_cpu_supports("avx512f")) found.push_back({lora_avx512, "avx512"});
#elif defined(__aarch64__)
    found.push_back({lora_neon, "neon"});
#endif
    return found;
}

class LoraKernels : public ::testing::TestWithParam<LoraKernelChoice> {};

/// Runs `pair` on random rows, some of them left alone, and compares with the definition.
void expect_definition(LoraKernel run, const Layer& layer, const LoraPair& pair,
                       std::mt19937& random, double tolerance) {
    std::normal_distribution<float> normal(0, 1);
    const std::size_t rows = 9;
    const std::uint32_t in = pair.in;
    const std::uint32_t out = pair.out;
    std::vector<float> x(rows * in);
    std::vector<float> y(rows * out);
    for (float& value : x)
        value = normal(random);
    for (float& value : y)
        value = normal(random);
    const std::vector<float> before = y;
    const std::vector<std::uint32_t> which = {8, 1, 2, 4, 5, 7, 0};
    const std::vector<float> scales = {1, 0.5F, 1, -1, 2, 1, 1};
    run({.pair = &pair, .rows = which, .scales = scales, .out_begin = 0, .out_end = out},
        {.x = x.data(), .x_stride = in, .y = y.data(), .y_stride = out});
    for (std::size_t row = 0; row < rows; ++row) {
        const auto at = std::find(which.begin(), which.end(), row);
        for (std::uint32_t o = 0; o < out; ++o) {
            const double delta =
                at == which.end()
                    ? 0
                    : expected(layer, &x[row * in],
                               scales[static_cast<std::size_t>(at - which.begin())], o);
            ASSERT_NEAR(y[row * out + o], before[row * out + o] + delta, tolerance)
                << layer.true_rank << " " << row << " " << o;
        }
    }
}

TEST_P(LoraKernels, ComputeTheDefinition) {
    std::mt19937 random(7);
    for (const std::uint32_t rank : {1U, 2U, 3U, 4U, 5U, 8U, 16U, 33U, 64U, 256U}) {
        Layer layer(32 + 16 * (rank % 3), 16 * (1 + rank % 7), rank, random);
        expect_definition(GetParam().run, layer, layer.pair, random, 1e-4);
        layer.round_to_bytes();
        // What is compared with is rounded to halves once more.
        expect_definition(GetParam().run, layer, layer.small, random, 2e-3);
    }
}

// What a row gets does not depend on who shares its batch, not in the last bit.
TEST_P(LoraKernels, ARowIsTheSameInAnyBatch) {
    std::mt19937 random(11);
    std::normal_distribution<float> normal(0, 1);
    const Layer layer(96, 128, 16, random);
    std::vector<float> x(7 * 96);
    for (float& value : x)
        value = normal(random);
    const auto run = [&](const LoraPair& pair, const std::vector<std::uint32_t>& rows) {
        std::vector<float> y(7 * 128, 0.25F);
        const std::vector<float> scales(rows.size(), 1.5F);
        for (const auto& [begin, end] : {std::pair{0U, 48U}, {48U, 128U}})
            GetParam().run(
                {.pair = &pair, .rows = rows, .scales = scales, .out_begin = begin, .out_end = end},
                {.x = x.data(), .x_stride = 96, .y = y.data(), .y_stride = 128});
        return y;
    };
    std::vector<std::uint32_t> everyone(7);
    std::iota(everyone.begin(), everyone.end(), 0U);
    for (const LoraPair* pair : {&layer.pair, &layer.small}) {
        const auto together = run(*pair, everyone);
        for (std::uint32_t row = 0; row < 7; ++row) {
            const auto alone = run(*pair, {row});
            for (std::size_t o = 0; o < 128; ++o)
                ASSERT_EQ(std::bit_cast<std::uint32_t>(alone[row * 128 + o]),
                          std::bit_cast<std::uint32_t>(together[row * 128 + o]));
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Each, LoraKernels, ::testing::ValuesIn(kernels()),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace molly::engine
