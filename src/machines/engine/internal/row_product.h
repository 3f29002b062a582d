#pragma once
// y = W x for few or many rows of activations, with quantized weights as llama.cpp keeps them in
// memory. Activations become bytes with one step per 32 numbers, as in ggml's own products. A row's
// result does not depend on how many rows there are, not in the last bit. Pure.
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
};

/// Weights in one block, and outputs that are computed together.
inline constexpr std::uint32_t product_block = 32;
inline constexpr std::uint32_t product_outputs = 8;

/// `in` is a multiple of it.
constexpr std::uint32_t least_inputs(WeightLayout layout) {
    return layout == WeightLayout::q4_k_by_eight ? 8 * product_block : product_block;
}
/// Bytes of one output's weights.
constexpr std::size_t weight_row_bytes(WeightLayout layout, std::uint32_t in) {
    const std::size_t blocks = in / product_block;
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
    std::vector<std::int8_t> bytes;  ///< shape: [rows, in]
    std::vector<float> steps;        ///< shape: [rows, in / 32]
    /// Sums of the bytes times what undoes that weights are unsigned. shape: [rows, in / 32]
    std::vector<std::int32_t> shifts;
};

using RowProduct = void (*)(const RowProductTask& task, ByteRows& scratch);

/// What every other kernel is checked against.
void row_product_reference(const RowProductTask& task, ByteRows& scratch);
/// Needs AVX-512 F, BW, DQ, VL and VNNI.
void row_product_avx512(const RowProductTask& task, ByteRows& scratch);

struct RowProductChoice {
    RowProduct run = nullptr;  ///< null: ggml's own products are the fastest here
    const char* name = "ggml";
};
RowProductChoice best_row_product();

}  // namespace molly::engine
