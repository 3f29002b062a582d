#pragma once
// The kernel as a template over sixteen floats; each instruction set compiles its own copy, so it
// stays in an unnamed namespace. Include it after the type `Sixteen` is known.
#include <algorithm>
#include <array>
#include <cstddef>

#include "engine/internal/lora_kernels.h"

namespace molly::engine {
namespace {

constexpr std::size_t rows_at_once = 4;

/// The middle of all ranks for `Rows` rows: scale * A x. shape: [Rows, rank]
template <class Sixteen, std::size_t Rows>
void contract(const LoraPair& pair, const std::array<const float*, Rows>& x,
              const std::array<float, Rows>& scale, float* middle) {
    const std::uint16_t* a = pair.a;
    for (std::uint32_t r = 0; r < pair.rank; r += lora_ranks) {
        std::array<std::array<Sixteen, lora_ranks>, Rows> sums;
        for (auto& row : sums)
            row.fill(Sixteen::zero());
        for (std::uint32_t i = 0; i < pair.in; i += lora_lanes) {
            std::array<Sixteen, lora_ranks> weights;
            for (std::size_t k = 0; k < lora_ranks; ++k, a += lora_lanes)
                weights[k] = Sixteen::load_half(a);
            for (std::size_t n = 0; n < Rows; ++n) {
                const Sixteen values = Sixteen::load(x[n] + i);
                for (std::size_t k = 0; k < lora_ranks; ++k)
                    sums[n][k] = Sixteen::multiply_add(weights[k], values, sums[n][k]);
            }
        }
        for (std::size_t n = 0; n < Rows; ++n)
            for (std::size_t k = 0; k < lora_ranks; ++k)
                middle[n * lora_rank_max + r + k] = sums[n][k].sum() * scale[n];
    }
}

/// y += B middle, `Blocks` times sixteen outputs from `first` on.
template <class Sixteen, std::size_t Rows, std::size_t Blocks>
void expand_blocks(const LoraPair& pair, std::uint32_t first, const float* middle,
                   const std::array<float*, Rows>& y) {
    const std::size_t block_numbers = std::size_t{pair.rank} * lora_lanes;
    const std::uint16_t* b = pair.b + first / lora_lanes * block_numbers;
    std::array<std::array<Sixteen, Blocks>, Rows> sums;
    for (auto& row : sums)
        row.fill(Sixteen::zero());
    for (std::uint32_t r = 0; r < pair.rank; ++r, b += lora_lanes) {
        std::array<Sixteen, Blocks> weights;
        for (std::size_t k = 0; k < Blocks; ++k)
            weights[k] = Sixteen::load_half(b + k * block_numbers);
        for (std::size_t n = 0; n < Rows; ++n) {
            const Sixteen value = Sixteen::same(middle[n * lora_rank_max + r]);
            for (std::size_t k = 0; k < Blocks; ++k)
                sums[n][k] = Sixteen::multiply_add(weights[k], value, sums[n][k]);
        }
    }
    for (std::size_t n = 0; n < Rows; ++n)
        for (std::size_t k = 0; k < Blocks; ++k)
            sums[n][k].add_to(y[n] + first + k * lora_lanes);
}

template <class Sixteen, std::size_t Rows>
void run_rows(const LoraTask& task, const LoraRows& matrix, std::size_t at) {
    constexpr std::size_t blocks = Rows == 1 ? 4 : Rows == 2 ? 4 : 3;
    const LoraPair& pair = *task.pair;
    std::array<float, Rows * lora_rank_max> middle;  // filled before it is read
    std::array<const float*, Rows> x{};
    std::array<float*, Rows> y{};
    std::array<float, Rows> scale{};
    for (std::size_t n = 0; n < Rows; ++n) {
        const std::uint32_t row = task.rows[at + n];
        x[n] = matrix.x + row * matrix.x_stride;
        y[n] = matrix.y + row * matrix.y_stride;
        scale[n] = pair.scale * task.scales[at + n];
    }
    contract<Sixteen, Rows>(pair, x, scale, middle.data());
    std::uint32_t first = task.out_begin;
    for (; first + blocks * lora_lanes <= task.out_end; first += blocks * lora_lanes)
        expand_blocks<Sixteen, Rows, blocks>(pair, first, middle.data(), y);
    for (; first < task.out_end; first += lora_lanes)
        expand_blocks<Sixteen, Rows, 1>(pair, first, middle.data(), y);
}

template <class Sixteen>
void run_task(const LoraTask& task, const LoraRows& matrix) {
    std::size_t at = 0;
    for (; at + rows_at_once <= task.rows.size(); at += rows_at_once)
        run_rows<Sixteen, rows_at_once>(task, matrix, at);
    const std::size_t left = task.rows.size() - at;
    if (left == 3) run_rows<Sixteen, 3>(task, matrix, at);
    if (left == 2) run_rows<Sixteen, 2>(task, matrix, at);
    if (left == 1) run_rows<Sixteen, 1>(task, matrix, at);
}

}  // namespace
}  // namespace molly::engine
