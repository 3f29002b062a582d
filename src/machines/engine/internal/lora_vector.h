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

/// How the factors are kept.
struct Halves {
    using Number = std::uint16_t;
    static const Number* a(const LoraPair& pair) { return pair.a; }
    static const Number* b(const LoraPair& pair) { return pair.b; }
    template <class Sixteen>
    static Sixteen load(const Number* from) {
        return Sixteen::load_half(from);
    }
    static float a_step(const LoraPair& /*pair*/, std::size_t /*rank*/) { return 1; }
    template <class Sixteen>
    static void add(const LoraPair& /*pair*/, const Sixteen& sum, std::uint32_t at, float* y) {
        sum.add_to(y + at);
    }
};

struct Bytes {
    using Number = std::int8_t;
    static const Number* a(const LoraPair& pair) { return pair.a_bytes; }
    static const Number* b(const LoraPair& pair) { return pair.b_bytes; }
    template <class Sixteen>
    static Sixteen load(const Number* from) {
        return Sixteen::load_bytes(from);
    }
    static float a_step(const LoraPair& pair, std::size_t rank) { return pair.a_steps[rank]; }
    template <class Sixteen>
    static void add(const LoraPair& pair, const Sixteen& sum, std::uint32_t at, float* y) {
        Sixteen::multiply_add(sum, Sixteen::load(pair.b_steps + at), Sixteen::zero())
            .add_to(y + at);
    }
};

/// The middle of all ranks for `Rows` rows: scale * A x. shape: [Rows, rank]
template <class Sixteen, class Kept, std::size_t Rows>
void contract(const LoraPair& pair, const std::array<const float*, Rows>& x,
              const std::array<float, Rows>& scale, float* middle) {
    const typename Kept::Number* a = Kept::a(pair);
    for (std::uint32_t r = 0; r < pair.rank; r += lora_ranks) {
        std::array<std::array<Sixteen, lora_ranks>, Rows> sums;
        for (auto& row : sums)
            row.fill(Sixteen::zero());
        for (std::uint32_t i = 0; i < pair.in; i += lora_lanes) {
            std::array<Sixteen, lora_ranks> weights;
            for (std::size_t k = 0; k < lora_ranks; ++k, a += lora_lanes)
                weights[k] = Kept::template load<Sixteen>(a);
            for (std::size_t n = 0; n < Rows; ++n) {
                const Sixteen values = Sixteen::load(x[n] + i);
                for (std::size_t k = 0; k < lora_ranks; ++k)
                    sums[n][k] = Sixteen::multiply_add(weights[k], values, sums[n][k]);
            }
        }
        for (std::size_t n = 0; n < Rows; ++n)
            for (std::size_t k = 0; k < lora_ranks; ++k)
                middle[n * lora_rank_max + r + k] =
                    sums[n][k].sum() * scale[n] * Kept::a_step(pair, r + k);
    }
}

/// y += B middle, `Blocks` times sixteen outputs from `first` on.
template <class Sixteen, class Kept, std::size_t Rows, std::size_t Blocks>
void expand_blocks(const LoraPair& pair, std::uint32_t first, const float* middle,
                   const std::array<float*, Rows>& y) {
    const std::size_t block_numbers = std::size_t{pair.rank} * lora_lanes;
    const typename Kept::Number* b = Kept::b(pair) + first / lora_lanes * block_numbers;
    std::array<std::array<Sixteen, Blocks>, Rows> sums;
    for (auto& row : sums)
        row.fill(Sixteen::zero());
    for (std::uint32_t r = 0; r < pair.rank; ++r, b += lora_lanes) {
        std::array<Sixteen, Blocks> weights;
        for (std::size_t k = 0; k < Blocks; ++k)
            weights[k] = Kept::template load<Sixteen>(b + k * block_numbers);
        for (std::size_t n = 0; n < Rows; ++n) {
            const Sixteen value = Sixteen::same(middle[n * lora_rank_max + r]);
            for (std::size_t k = 0; k < Blocks; ++k)
                sums[n][k] = Sixteen::multiply_add(weights[k], value, sums[n][k]);
        }
    }
    for (std::size_t n = 0; n < Rows; ++n)
        for (std::size_t k = 0; k < Blocks; ++k)
            Kept::add(pair, sums[n][k], first + static_cast<std::uint32_t>(k) * lora_lanes, y[n]);
}

template <class Sixteen, class Kept, std::size_t Rows>
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
    contract<Sixteen, Kept, Rows>(pair, x, scale, middle.data());
    std::uint32_t first = task.out_begin;
    for (; first + blocks * lora_lanes <= task.out_end; first += blocks * lora_lanes)
        expand_blocks<Sixteen, Kept, Rows, blocks>(pair, first, middle.data(), y);
    for (; first < task.out_end; first += lora_lanes)
        expand_blocks<Sixteen, Kept, Rows, 1>(pair, first, middle.data(), y);
}

template <class Sixteen, class Kept>
void run_all(const LoraTask& task, const LoraRows& matrix) {
    std::size_t at = 0;
    for (; at + rows_at_once <= task.rows.size(); at += rows_at_once)
        run_rows<Sixteen, Kept, rows_at_once>(task, matrix, at);
    const std::size_t left = task.rows.size() - at;
    if (left == 3) run_rows<Sixteen, Kept, 3>(task, matrix, at);
    if (left == 2) run_rows<Sixteen, Kept, 2>(task, matrix, at);
    if (left == 1) run_rows<Sixteen, Kept, 1>(task, matrix, at);
}

template <class Sixteen>
void run_task(const LoraTask& task, const LoraRows& matrix) {
    if (task.pair->a_bytes != nullptr) {
        run_all<Sixteen, Bytes>(task, matrix);
    } else {
        run_all<Sixteen, Halves>(task, matrix);
    }
}

}  // namespace
}  // namespace molly::engine
