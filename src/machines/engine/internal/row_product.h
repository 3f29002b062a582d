#pragma once
// y = W x for few or many rows of activations, with quantized weights as llama.cpp keeps them in
// memory. Activations become bytes with one step per 32 numbers (128 for Q6_K), as in ggml's own
// products or finer. A row's result does not depend on how many rows there are, not in the last
// bit. Pure.
#include <cstddef>
#include <cstdint>
#include <vector>

namespace molly::engine {

/// How the weights lie. Blocks hold 32 neighbouring weights of one output and their step, a half.
enum class WeightLayout : std::uint8_t {
    q8_0,           ///< outputs one after the other: step, 32 bytes
    q4_0_by_eight,  ///< eight outputs side by side: 8 steps, then nibbles in pieces of 8 bytes
    /// Eight outputs side by side, eight blocks at once: 8 steps, 8 steps of what is taken away,
    /// for each block both counts of steps in 6 bits, then nibbles in pieces of 8 bytes.
    q4_k_by_eight,
    /// Outputs one after the other, eight blocks at once: 128 bytes of nibbles, 64 with the upper
    /// two bits, a count of steps in a byte for each sixteen weights, and the step.
    q6_k,
};

/// Weights in one block, and outputs that are computed together.
inline constexpr std::uint32_t product_block = 32;
inline constexpr std::uint32_t product_outputs = 8;

/// `in` is a multiple of it.
constexpr std::uint32_t least_inputs(WeightLayout layout) {
    const bool eight = layout == WeightLayout::q4_k_by_eight || layout == WeightLayout::q6_k;
    return eight ? 8 * product_block : product_block;
}
/// Activations that share a step.
constexpr std::uint32_t numbers_per_step(WeightLayout layout) {
    return layout == WeightLayout::q6_k ? 4 * product_block : product_block;
}
/// Bytes of one output's weights.
constexpr std::size_t weight_row_bytes(WeightLayout layout, std::uint32_t in) {
    const std::size_t blocks = in / product_block;
    if (layout == WeightLayout::q6_k) return blocks / 8 * 210;
    return blocks * (layout == WeightLayout::q8_0 ? 34 : 18);  // eight of Q4_K: 144
}

/// Outputs from `out_begin` to `out_end` (multiples of 8) of all rows.
struct RowProductTask {
    WeightLayout layout = WeightLayout::q8_0;
    const std::uint8_t* weights = nullptr;
    std::uint32_t in = 0;      ///< a multiple of least_inputs
    const float* x = nullptr;  ///< shape: [rows, in], `x_stride` floats apart
    std::size_t x_stride = 0;
    float* y = nullptr;  ///< shape: [rows, out], `y_stride` floats apart
    std::size_t y_stride = 0;
    std::uint32_t rows = 0;
    std::uint32_t out_begin = 0;
    std::uint32_t out_end = 0;
};

/// Activations in bytes; kept by the caller so that its memory is used again.
struct ByteRows {
    struct alignas(64) Line {
        std::uint8_t bytes[64];
    };
    /// One row after the other, each from a line's beginning: bytes, steps and shifts.
    std::vector<Line> lines;
};

using RowProduct = void (*)(const RowProductTask& task, ByteRows& scratch);

/// What every other kernel is checked against.
void row_product_reference(const RowProductTask& task, ByteRows& scratch);
/// Needs AVX-512 F, BW, DQ, VL and VNNI.
void row_product_avx512(const RowProductTask& task, ByteRows& scratch);
/// Needs AVX2, FMA, F16C and AVX-VNNI.
void row_product_avx_vnni(const RowProductTask& task, ByteRows& scratch);
/// Needs AVX2, FMA and F16C.
void row_product_avx2(const RowProductTask& task, ByteRows& scratch);

struct RowProductChoice {
    RowProduct run = nullptr;  ///< null: ggml's own products are the fastest here
    const char* name = "ggml";
};
/// Those that this processor can run, the fastest first.
std::vector<RowProductChoice> row_products();
RowProductChoice best_row_product();

}  // namespace molly::engine
