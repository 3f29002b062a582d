#if defined(__x86_64__)
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <immintrin.h>

#include "engine/internal/row_product.h"

namespace molly::engine {
namespace {

constexpr std::size_t rows_at_once = 8;
constexpr std::size_t cached_bytes = 128U << 10U;  // of weights, while all rows pass by

/// One block of 32 numbers as bytes. VNNI multiplies unsigned by signed bytes, so weights are read
/// with an offset, and `shift` takes the offset times the block's sum out again.
void to_bytes(const float* x, std::int32_t factor, std::int8_t* bytes, float& step,
              std::int32_t& shift) {
    const __m512 low = _mm512_loadu_ps(x);
    const __m512 high = _mm512_loadu_ps(x + 16);
    const float largest =
        _mm512_reduce_max_ps(_mm512_max_ps(_mm512_abs_ps(low), _mm512_abs_ps(high)));
    step = largest < 1e-30F ? 0 : largest / 127;
    const __m512 inverse = _mm512_set1_ps(step == 0 ? 0 : 1 / step);
    const __m512i first = _mm512_cvtps_epi32(_mm512_mul_ps(low, inverse));
    const __m512i second = _mm512_cvtps_epi32(_mm512_mul_ps(high, inverse));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(bytes), _mm512_cvtsepi32_epi8(first));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(bytes + 16), _mm512_cvtsepi32_epi8(second));
    shift = factor * _mm512_reduce_add_epi32(_mm512_add_epi32(first, second));
}

/// The offset, 8 or 128, over the lanes that one output's sum is spread over.
constexpr std::int32_t shift_factor(WeightLayout layout) {
    switch (layout) {
        case WeightLayout::q8_0:
            return -128 / 8;
        case WeightLayout::q4_0_by_eight:
            return -8 / 2;
        case WeightLayout::q4_k_by_eight:
            return 1;  // its weights are unsigned
    }
    return 0;
}

void to_bytes(const RowProductTask& task, ByteRows& rows) {
    const std::size_t blocks = task.in / product_block;
    rows.bytes.resize(std::max(rows.bytes.size(), std::size_t{task.rows} * task.in));
    rows.steps.resize(std::max(rows.steps.size(), task.rows * blocks));
    rows.shifts.resize(std::max(rows.shifts.size(), task.rows * blocks));
    const std::int32_t factor = shift_factor(task.layout);
    for (std::uint32_t row = 0; row < task.rows; ++row)
        for (std::size_t at = 0; at < blocks; ++at)
            to_bytes(task.x + row * task.x_stride + at * product_block, factor,
                     &rows.bytes[std::size_t{row} * task.in + at * product_block],
                     rows.steps[row * blocks + at], rows.shifts[row * blocks + at]);
}

/// What the tiles read of their rows.
template <std::size_t Rows>
struct Tile {
    std::array<const std::int8_t*, Rows> bytes;
    std::array<const float*, Rows> steps;
    std::array<const std::int32_t*, Rows> shifts;
    std::array<float*, Rows> y;
};

__m512i eight_times(const std::int8_t* bytes) {
    std::int64_t eight = 0;
    std::memcpy(&eight, bytes, sizeof(eight));
    return _mm512_set1_epi64(eight);
}

__m256 sum_of_pairs(__m512 lanes) {
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 0, 0, 0, 0, 0, 0, 0, 0);
    const __m512i odd = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 0, 0, 0, 0, 0, 0, 0, 0);
    return _mm512_castps512_ps256(
        _mm512_add_ps(_mm512_permutexvar_ps(even, lanes), _mm512_permutexvar_ps(odd, lanes)));
}

/// Eight outputs; each has two neighbouring lanes of a sum.
template <std::size_t Rows>
void eight_outputs_q4_0(const std::uint8_t* weights, std::size_t blocks, const Tile<Rows>& tile,
                        std::uint32_t out) {
    constexpr int and_then_xor = 0x6A;  // (a & b) ^ c: nibbles without their sign, which ggml adds
    const __m512i low = _mm512_set1_epi8(15);
    const __m512i sign = _mm512_set1_epi8(8);
    const __m512i twice = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    std::array<__m512, Rows> sums;
    sums.fill(_mm512_setzero_ps());
    for (std::size_t at = 0; at < blocks; ++at, weights += 144) {
        const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(weights));
        const __m512 steps =
            _mm512_permutexvar_ps(twice, _mm512_castps256_ps512(_mm256_cvtph_ps(halves)));
        const __m512i first = _mm512_loadu_si512(weights + 16);
        const __m512i second = _mm512_loadu_si512(weights + 80);
        _mm_prefetch(reinterpret_cast<const char*>(weights + 8 * 144), _MM_HINT_T0);
        _mm_prefetch(reinterpret_cast<const char*>(weights + 8 * 144 + 64), _MM_HINT_T0);
        const std::array<__m512i, 4> quarters = {
            _mm512_ternarylogic_epi32(first, low, sign, and_then_xor),
            _mm512_ternarylogic_epi32(second, low, sign, and_then_xor),
            _mm512_ternarylogic_epi32(_mm512_srli_epi16(first, 4), low, sign, and_then_xor),
            _mm512_ternarylogic_epi32(_mm512_srli_epi16(second, 4), low, sign, and_then_xor)};
        for (std::size_t row = 0; row < Rows; ++row) {
            const std::int8_t* x = tile.bytes[row] + at * product_block;
            __m512i whole = _mm512_set1_epi32(tile.shifts[row][at]);
            for (std::size_t quarter = 0; quarter < 4; ++quarter)
                whole = _mm512_dpbusd_epi32(whole, quarters[quarter], eight_times(x + quarter * 8));
            sums[row] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(whole),
                                        _mm512_mul_ps(steps, _mm512_set1_ps(tile.steps[row][at])),
                                        sums[row]);
        }
    }
    for (std::size_t row = 0; row < Rows; ++row)
        _mm256_storeu_ps(tile.y[row] + out, sum_of_pairs(sums[row]));
}

/// A number for each of eight outputs, from six bits of which four outputs' upper ones lie apart.
__m256 six_bits(std::uint32_t first, std::uint32_t second) {
    const std::uint32_t upper = (second & 0x0f0f0f0fU) | ((first >> 6U & 0x03030303U) << 4U);
    const std::uint64_t bytes = (first & 0x3f3f3f3fU) | (std::uint64_t{upper} << 32U);
    return _mm256_cvtepi32_ps(
        _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<std::int64_t>(bytes))));
}

/// The steps of one block for eight outputs, and what is taken away from each of their weights.
struct BlockSteps {
    BlockSteps(const std::uint8_t* packed, __m256 step, __m256 step_of_less) {
        std::array<std::uint32_t, 3> words{};
        std::memcpy(words.data(), packed, sizeof(words));
        const __m512i twice = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
        const __m256 once = _mm256_mul_ps(step, six_bits(words[0], words[2]));
        steps = _mm512_permutexvar_ps(twice, _mm512_castps256_ps512(once));
        less = _mm256_mul_ps(step_of_less, six_bits(words[1], words[2] >> 4U));
    }
    __m512 steps;
    __m256 less;
};

/// Eight outputs; each has two neighbouring lanes of a sum.
template <std::size_t Rows>
void eight_outputs_q4_k(const std::uint8_t* weights, std::size_t blocks, const Tile<Rows>& tile,
                        std::uint32_t out) {
    const __m512i low = _mm512_set1_epi8(15);
    std::array<__m512, Rows> sums;
    std::array<__m256, Rows> less;
    sums.fill(_mm512_setzero_ps());
    less.fill(_mm256_setzero_ps());
    for (std::size_t at = 0; at < blocks; ++at) {
        const std::uint8_t* super = weights + at / 8 * 1152;
        const auto* halves = reinterpret_cast<const __m128i*>(super);
        const BlockSteps block(super + 32 + at % 8 * 12, _mm256_cvtph_ps(_mm_loadu_si128(halves)),
                               _mm256_cvtph_ps(_mm_loadu_si128(halves + 1)));
        const std::uint8_t* nibbles = super + 128 + at % 8 / 2 * 256;
        std::array<__m512i, 4> quarters;
        for (std::size_t quarter = 0; quarter < 4; ++quarter) {
            const __m512i both = _mm512_loadu_si512(nibbles + quarter * 64);
            _mm_prefetch(reinterpret_cast<const char*>(nibbles + 1152 + quarter * 64), _MM_HINT_T0);
            quarters[quarter] =
                _mm512_and_si512(at % 2 == 0 ? both : _mm512_srli_epi16(both, 4), low);
        }
        for (std::size_t row = 0; row < Rows; ++row) {
            const std::int8_t* x = tile.bytes[row] + at * product_block;
            const float step = tile.steps[row][at];
            __m512i whole = _mm512_setzero_si512();
            for (std::size_t quarter = 0; quarter < 4; ++quarter)
                whole = _mm512_dpbusd_epi32(whole, quarters[quarter], eight_times(x + quarter * 8));
            sums[row] =
                _mm512_fmadd_ps(_mm512_cvtepi32_ps(whole),
                                _mm512_mul_ps(block.steps, _mm512_set1_ps(step)), sums[row]);
            const float sum = step * static_cast<float>(tile.shifts[row][at]);
            less[row] = _mm256_fmadd_ps(block.less, _mm256_set1_ps(sum), less[row]);
        }
    }
    for (std::size_t row = 0; row < Rows; ++row)
        _mm256_storeu_ps(tile.y[row] + out, _mm256_sub_ps(sum_of_pairs(sums[row]), less[row]));
}

float sum_of(__m256 lanes) {
    __m128 sum = _mm_add_ps(_mm256_castps256_ps128(lanes), _mm256_extractf128_ps(lanes, 1));
    sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
    return _mm_cvtss_f32(_mm_add_ss(sum, _mm_movehdup_ps(sum)));
}

/// Four outputs in two pairs; each output has half of the lanes of its pair's sum.
template <std::size_t Rows>
void four_outputs_q8_0(const std::uint8_t* weights, std::size_t stride, std::size_t blocks,
                       const Tile<Rows>& tile, std::uint32_t out) {
    const __m512i sign = _mm512_set1_epi8(static_cast<char>(0x80));
    const __m512i halves = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
    std::array<std::array<__m512, Rows>, 2> sums;
    for (auto& pair : sums)
        pair.fill(_mm512_setzero_ps());
    for (std::size_t at = 0; at < blocks; ++at, weights += 34) {
        std::array<__m512i, 2> bytes;
        std::array<__m512, 2> steps;
        for (std::size_t pair = 0; pair < 2; ++pair) {
            const std::uint8_t* one = weights + stride * (2 * pair);
            const std::uint8_t* two = one + stride;
            // Rows are short, and the processor's own prefetcher does not see over their ends.
            _mm_prefetch(reinterpret_cast<const char*>(one + 4 * stride), _MM_HINT_T0);
            _mm_prefetch(reinterpret_cast<const char*>(two + 4 * stride), _MM_HINT_T0);
            const __m512i low = _mm512_castsi256_si512(
                _mm256_loadu_si256(reinterpret_cast<const __m256i*>(one + 2)));
            const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(two + 2));
            bytes[pair] = _mm512_xor_si512(_mm512_inserti64x4(low, high, 1), sign);
            std::array<std::uint16_t, 2> both{};
            std::memcpy(both.data(), one, 2);
            std::memcpy(&both[1], two, 2);
            const __m128 wide = _mm_cvtph_ps(_mm_cvtsi32_si128(both[0] | (both[1] << 16)));
            steps[pair] = _mm512_permutexvar_ps(halves, _mm512_castps128_ps512(wide));
        }
        for (std::size_t row = 0; row < Rows; ++row) {
            const __m512i x = _mm512_broadcast_i64x4(_mm256_loadu_si256(
                reinterpret_cast<const __m256i*>(tile.bytes[row] + at * product_block)));
            const __m512i shift = _mm512_set1_epi32(tile.shifts[row][at]);
            const __m512 step = _mm512_set1_ps(tile.steps[row][at]);
            for (std::size_t pair = 0; pair < 2; ++pair)
                sums[pair][row] =
                    _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_dpbusd_epi32(shift, bytes[pair], x)),
                                    _mm512_mul_ps(steps[pair], step), sums[pair][row]);
        }
    }
    for (std::size_t row = 0; row < Rows; ++row) {
        for (std::size_t pair = 0; pair < 2; ++pair) {
            const __m512 sum = sums[pair][row];
            tile.y[row][out + 2 * pair] = sum_of(_mm512_castps512_ps256(sum));
            tile.y[row][out + 2 * pair + 1] = sum_of(_mm512_extractf32x8_ps(sum, 1));
        }
    }
}

template <std::size_t Rows>
void some_rows(const RowProductTask& task, const ByteRows& rows, std::uint32_t first,
               std::uint32_t out_begin, std::uint32_t out_end) {
    const std::size_t blocks = task.in / product_block;
    Tile<Rows> tile;
    for (std::size_t row = 0; row < Rows; ++row) {
        tile.bytes[row] = &rows.bytes[(first + row) * task.in];
        tile.steps[row] = &rows.steps[(first + row) * blocks];
        tile.shifts[row] = &rows.shifts[(first + row) * blocks];
        tile.y[row] = task.y + (first + row) * task.y_stride;
    }
    const std::size_t stride = weight_row_bytes(task.layout, task.in);
    for (std::uint32_t out = out_begin; out < out_end; out += product_outputs) {
        const std::uint8_t* weights = task.weights + out * stride;
        if (task.layout == WeightLayout::q4_0_by_eight) {
            eight_outputs_q4_0<Rows>(weights, blocks, tile, out);
        } else if (task.layout == WeightLayout::q4_k_by_eight) {
            eight_outputs_q4_k<Rows>(weights, blocks, tile, out);
        } else {
            four_outputs_q8_0<Rows>(weights, stride, blocks, tile, out);
            four_outputs_q8_0<Rows>(weights + 4 * stride, stride, blocks, tile, out + 4);
        }
    }
}

using SomeRows = void (*)(const RowProductTask&, const ByteRows&, std::uint32_t, std::uint32_t,
                          std::uint32_t);

template <std::size_t... Rows>
constexpr std::array<SomeRows, sizeof...(Rows)> for_each_count(
    std::index_sequence<Rows...> /*counts*/) {
    return {some_rows<Rows + 1>...};
}

}  // namespace

void row_product_avx512(const RowProductTask& task, ByteRows& scratch) {
    constexpr auto by_count = for_each_count(std::make_index_sequence<rows_at_once>());
    to_bytes(task, scratch);
    const std::size_t group = product_outputs * weight_row_bytes(task.layout, task.in);
    const auto chunk = static_cast<std::uint32_t>(std::max<std::size_t>(1, cached_bytes / group)) *
                       product_outputs;
    // As many rows at once as go, and the passes as equal as can be.
    const auto passes = static_cast<std::uint32_t>((task.rows + rows_at_once - 1) / rows_at_once);
    for (std::uint32_t out = task.out_begin; out < task.out_end; out += chunk) {
        const std::uint32_t end = std::min(out + chunk, task.out_end);
        for (std::uint32_t pass = 0; pass < passes; ++pass) {
            const std::uint32_t first = task.rows * pass / passes;
            const std::uint32_t rows = task.rows * (pass + 1) / passes - first;
            by_count[rows - 1](task, scratch, first, out, end);
        }
    }
}

}  // namespace molly::engine
#endif
