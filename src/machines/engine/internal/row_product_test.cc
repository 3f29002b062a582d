#include "engine/internal/row_product.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include <ggml-cpu.h>
#include <ggml.h>
#include <gtest/gtest.h>

namespace molly::engine {
namespace {

constexpr WeightLayout layouts[] = {WeightLayout::q8_0, WeightLayout::q4_0_by_eight,
                                    WeightLayout::q4_k_by_eight, WeightLayout::q6_k};

ggml_type type_of(WeightLayout layout) {
    switch (layout) {
        case WeightLayout::q8_0:
            return GGML_TYPE_Q8_0;
        case WeightLayout::q4_0_by_eight:
            return GGML_TYPE_Q4_0;
        case WeightLayout::q4_k_by_eight:
            return GGML_TYPE_Q4_K;
        case WeightLayout::q6_k:
            return GGML_TYPE_Q6_K;
    }
    return GGML_TYPE_COUNT;
}

/// Random weights as ggml quantizes them, in the layout, and what they stand for.
struct Weights {
    Weights(WeightLayout wanted, std::uint32_t inputs, std::uint32_t outputs, std::mt19937& random)
        : layout(wanted), in(inputs), out(outputs) {
        std::normal_distribution<float> normal(0, 1);
        numbers.resize(std::size_t{in} * out);
        for (float& number : numbers)
            number = normal(random);
        const ggml_type type = type_of(layout);
        std::vector<std::uint8_t> rows(weight_row_bytes(layout, in) * out);
        ggml_quantize_chunk(type, numbers.data(), rows.data(), 0, out, in, nullptr);
        ggml_get_type_traits(type)->to_float(rows.data(), numbers.data(),
                                             static_cast<std::int64_t>(numbers.size()));
        packed = layout == WeightLayout::q4_0_by_eight   ? by_eight(rows)
                 : layout == WeightLayout::q4_k_by_eight ? k_by_eight(rows)
                                                         : rows;
    }

    /// Likewise Q4_K, make_block_q4_Kx8: two halves, 12 bytes of counts, 128 of nibbles.
    std::vector<std::uint8_t> k_by_eight(const std::vector<std::uint8_t>& rows) const {
        std::vector<std::uint8_t> result;
        const std::size_t blocks = in / 256;
        for (std::size_t group = 0; group < out / product_outputs * blocks; ++group) {
            const std::size_t first = group / blocks * product_outputs * blocks + group % blocks;
            const auto block = [&](std::size_t lane) {
                return rows.data() + (first + lane * blocks) * 144;
            };
            for (const std::size_t which : {0U, 2U})
                for (std::size_t lane = 0; lane < product_outputs; ++lane)
                    result.insert(result.end(), block(lane) + which, block(lane) + which + 2);
            for (std::size_t part = 0; part < 8; ++part)
                add_counts(block, part, result);
            for (std::size_t piece = 0; piece < 16; ++piece)
                for (std::size_t lane = 0; lane < product_outputs; ++lane)
                    result.insert(result.end(), block(lane) + 16 + piece * 8,
                                  block(lane) + 24 + piece * 8);
        }
        return result;
    }

    template <class Block>
    static void add_counts(const Block& block, std::size_t part,
                           std::vector<std::uint8_t>& result) {
        std::array<std::array<unsigned, 8>, 2> counts{};  // of steps, and of what is taken away
        for (std::size_t lane = 0; lane < product_outputs; ++lane) {
            const std::uint8_t* packed = block(lane) + 4;
            for (const std::size_t which : {0U, 1U}) {
                const unsigned own = packed[part % 4 + 4 * which];
                const unsigned low = packed[part % 4 + 8];
                counts[which][lane] =
                    part < 4 ? own & 63U : (own >> 6U << 4U) | (which == 0 ? low & 15U : low >> 4U);
            }
        }
        for (const auto& six : counts)
            for (std::size_t i = 0; i < 4; ++i)
                result.push_back(static_cast<std::uint8_t>(six[i] | (six[i + 4] >> 4U << 6U)));
        for (std::size_t i = 4; i < 8; ++i)
            result.push_back(
                static_cast<std::uint8_t>((counts[0][i] & 15U) | ((counts[1][i] & 15U) << 4U)));
    }

    /// As ggml's repacking lays Q4_0 out: ggml-cpu/repack.cpp, make_block_q4_0x8.
    std::vector<std::uint8_t> by_eight(const std::vector<std::uint8_t>& rows) const {
        std::vector<std::uint8_t> result;
        const std::size_t blocks = in / product_block;
        for (std::size_t group = 0; group < out / product_outputs; ++group) {
            for (std::size_t at = 0; at < blocks; ++at) {
                const auto block = [&](std::size_t lane) {
                    return rows.data() + ((group * product_outputs + lane) * blocks + at) * 18;
                };
                for (std::size_t lane = 0; lane < product_outputs; ++lane)
                    result.insert(result.end(), block(lane), block(lane) + 2);
                for (const std::size_t half : {0U, 8U})
                    for (std::size_t lane = 0; lane < product_outputs; ++lane)
                        for (std::size_t i = 0; i < 8; ++i)
                            result.push_back(block(lane)[2 + half + i] ^ 0x88U);
            }
        }
        return result;
    }

    RowProductTask task(const std::vector<float>& x, std::vector<float>& y,
                        std::uint32_t rows) const {
        return {.layout = layout,
                .weights = packed.data(),
                .in = in,
                .x = x.data(),
                .x_stride = in,
                .y = y.data(),
                .y_stride = out,
                .rows = rows,
                .out_begin = 0,
                .out_end = out};
    }

    WeightLayout layout;
    std::uint32_t in;
    std::uint32_t out;
    std::vector<float> numbers;
    std::vector<std::uint8_t> packed;
};

std::vector<float> random_rows(std::size_t count, std::mt19937& random) {
    std::normal_distribution<float> normal(0, 1);
    std::vector<float> x(count);
    for (float& value : x)
        value = normal(random);
    return x;
}

std::vector<RowProductChoice> kernels() {
    auto found = row_products();
    found.push_back({row_product_reference, "plain"});
    return found;
}

class RowProductKernels : public ::testing::TestWithParam<RowProductChoice> {};

TEST_P(RowProductKernels, ComputeTheDefinitionUpToTheRoundingOfActivations) {
    std::mt19937 random(3);
    ByteRows scratch;
    for (const auto layout : layouts) {
        for (const std::uint32_t rows : {1U, 2U, 3U, 7U, 8U, 9U, 17U}) {
            const Weights weights(layout, least_inputs(layout) * (1 + rows % 5), 8 * (1 + rows % 7),
                                  random);
            const auto x = random_rows(std::size_t{rows} * weights.in, random);
            std::vector<float> y(std::size_t{rows} * weights.out, 9.0F);
            GetParam().run(weights.task(x, y, rows), scratch);
            for (std::uint32_t row = 0; row < rows; ++row) {
                for (std::uint32_t out = 0; out < weights.out; ++out) {
                    double sum = 0;
                    double size = 0;
                    for (std::uint32_t i = 0; i < weights.in; ++i) {
                        const double term = double{x[std::size_t{row} * weights.in + i]} *
                                            weights.numbers[std::size_t{out} * weights.in + i];
                        sum += term;
                        size += term * term;
                    }
                    // A step of a byte is a 127th of about three; errors add up as squares.
                    ASSERT_NEAR(y[std::size_t{row} * weights.out + out], sum,
                                0.05 * std::sqrt(size) + 1e-4)
                        << rows << " " << row << " " << out;
                }
            }
        }
    }
}

TEST_P(RowProductKernels, EqualTheReference) {
    std::mt19937 random(5);
    ByteRows scratch;
    for (const auto layout : layouts) {
        const Weights weights(layout, 1024, 64, random);
        auto x = random_rows(std::size_t{19} * weights.in, random);
        std::fill_n(x.begin() + 64, 32, 0.0F);    // a block of nothing
        std::fill_n(x.begin() + 96, 32, 1e-38F);  // and one whose step has no inverse
        x[5] = 1e6F;
        std::vector<float> expected(std::size_t{19} * weights.out);
        std::vector<float> y(expected.size());
        row_product_reference(weights.task(x, expected, 19), scratch);
        GetParam().run(weights.task(x, y, 19), scratch);
        for (std::size_t at = 0; at < y.size(); ++at) {
            const auto row = expected.begin() + std::ptrdiff_t(at / weights.out * weights.out);
            const auto [least, most] = std::minmax_element(row, row + weights.out);
            ASSERT_NEAR(y[at], expected[at], 1e-5F * std::max(-*least, *most)) << at;
        }
    }
}

// Alone, with others, and whichever outputs a thread computes: the same bits.
TEST_P(RowProductKernels, ARowIsTheSameInAnyBatch) {
    std::mt19937 random(7);
    ByteRows scratch;
    for (const auto layout : layouts) {
        const Weights weights(layout, 256, 48, random);
        const auto x = random_rows(std::size_t{11} * weights.in, random);
        std::vector<float> together(std::size_t{11} * weights.out);
        GetParam().run(weights.task(x, together, 11), scratch);
        for (std::uint32_t row = 0; row < 11; ++row) {
            std::vector<float> alone(weights.out);
            auto task = weights.task(x, alone, 1);
            task.x += std::size_t{row} * weights.in;
            for (const auto& [begin, end] : {std::pair{0U, 16U}, {16U, 24U}, {24U, 48U}}) {
                task.out_begin = begin;
                task.out_end = end;
                GetParam().run(task, scratch);
            }
            EXPECT_EQ(0, std::memcmp(alone.data(), &together[std::size_t{row} * weights.out],
                                     alone.size() * sizeof(float)))
                << row;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Each, RowProductKernels, ::testing::ValuesIn(kernels()),
                         [](const auto& tested) {
                             std::string name = tested.param.name;
                             std::ranges::replace(name, '-', '_');
                             return name;
                         });

}  // namespace
}  // namespace molly::engine
