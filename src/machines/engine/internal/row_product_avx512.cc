#if defined(__x86_64__)
#include <array>
#include <cstring>

#include <immintrin.h>

#include "engine/internal/row_product_256.h"

namespace molly::engine {
namespace {

struct Avx512;
template <std::size_t Rows>
using Tile = RowTile<Avx512, Rows>;

using Vectors = Vectors256<Avx512>;

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
        tile.template fetch_ahead<2>(weights + 8 * 144);
        const std::array<__m512i, 4> quarters = {
            _mm512_ternarylogic_epi32(first, low, sign, and_then_xor),
            _mm512_ternarylogic_epi32(second, low, sign, and_then_xor),
            _mm512_ternarylogic_epi32(_mm512_srli_epi16(first, 4), low, sign, and_then_xor),
            _mm512_ternarylogic_epi32(_mm512_srli_epi16(second, 4), low, sign, and_then_xor)};
        for (std::size_t row = 0; row < Rows; ++row) {
            const std::uint8_t* x = tile.bytes[row] + at * product_block;
            __m512i whole = _mm512_set1_epi32(tile.shift(row, at));
            for (std::size_t quarter = 0; quarter < 4; ++quarter)
                whole =
                    _mm512_dpbusd_epi32(whole, quarters[quarter],
                                        _mm512_set1_epi64(Vectors::eight_bytes(x + quarter * 8)));
            sums[row] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(whole),
                                        _mm512_mul_ps(steps, _mm512_set1_ps(tile.step(row, at))),
                                        sums[row]);
        }
    }
    for (std::size_t row = 0; row < Rows; ++row)
        _mm256_storeu_ps(tile.y[row] + out, sum_of_pairs(sums[row]));
}

/// The steps of one block for eight outputs, and what is taken away from each of their weights.
struct BlockSteps {
    BlockSteps(const std::uint8_t* packed, __m256 step, __m256 step_of_less) {
        std::array<std::uint32_t, 3> words{};
        std::memcpy(words.data(), packed, sizeof(words));
        const __m512i twice = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
        const __m256 once = _mm256_mul_ps(step, Vectors::six_bits(words[0], words[2]));
        steps = _mm512_permutexvar_ps(twice, _mm512_castps256_ps512(once));
        less = _mm256_mul_ps(step_of_less, Vectors::six_bits(words[1], words[2] >> 4U));
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
        tile.template fetch_ahead<4>(nibbles + 1152);
        std::array<__m512i, 4> quarters;
        for (std::size_t quarter = 0; quarter < 4; ++quarter) {
            const __m512i both = _mm512_loadu_si512(nibbles + quarter * 64);
            quarters[quarter] =
                _mm512_and_si512(at % 2 == 0 ? both : _mm512_srli_epi16(both, 4), low);
        }
        for (std::size_t row = 0; row < Rows; ++row) {
            const std::uint8_t* x = tile.bytes[row] + at * product_block;
            const float step = tile.step(row, at);
            __m512i whole = _mm512_setzero_si512();
            for (std::size_t quarter = 0; quarter < 4; ++quarter)
                whole =
                    _mm512_dpbusd_epi32(whole, quarters[quarter],
                                        _mm512_set1_epi64(Vectors::eight_bytes(x + quarter * 8)));
            sums[row] =
                _mm512_fmadd_ps(_mm512_cvtepi32_ps(whole),
                                _mm512_mul_ps(block.steps, _mm512_set1_ps(step)), sums[row]);
            const float sum = step * static_cast<float>(tile.shift(row, at));
            less[row] = _mm256_fmadd_ps(block.less, _mm256_set1_ps(sum), less[row]);
        }
    }
    for (std::size_t row = 0; row < Rows; ++row)
        _mm256_storeu_ps(tile.y[row] + out, _mm256_sub_ps(sum_of_pairs(sums[row]), less[row]));
}

/// What signed weights make of the offset 128 of their activations, negated.
__m512i against_offset(__m512i weights) {
    const __m512i offset = _mm512_set1_epi8(static_cast<char>(0x80));
    const __m512i zero = _mm512_setzero_si512();
    return _mm512_sub_epi32(zero, _mm512_dpbusd_epi32(zero, offset, weights));
}

/// Four outputs in two pairs; each output has half of the lanes of its pair's sum.
template <std::size_t Rows>
void four_outputs_q8_0(const std::uint8_t* weights, std::size_t stride, std::size_t blocks,
                       const Tile<Rows>& tile, std::uint32_t out) {
    const __m512i halves = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
    std::array<std::array<__m512, Rows>, 2> sums;
    for (auto& pair : sums)
        pair.fill(_mm512_setzero_ps());
    for (std::size_t at = 0; at < blocks; ++at, weights += 34) {
        std::array<__m512i, 2> bytes;
        std::array<__m512i, 2> shifts;
        std::array<__m512, 2> steps;
        for (std::size_t pair = 0; pair < 2; ++pair) {
            const std::uint8_t* one = weights + stride * (2 * pair);
            const std::uint8_t* two = one + stride;
            tile.template fetch_ahead<1>(one + 4 * stride);
            tile.template fetch_ahead<1>(two + 4 * stride);
            const __m512i low = _mm512_castsi256_si512(
                _mm256_loadu_si256(reinterpret_cast<const __m256i*>(one + 2)));
            const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(two + 2));
            bytes[pair] = _mm512_inserti64x4(low, high, 1);
            shifts[pair] = against_offset(bytes[pair]);
            std::array<std::uint16_t, 2> both{};
            std::memcpy(both.data(), one, 2);
            std::memcpy(&both[1], two, 2);
            const __m128 wide = _mm_cvtph_ps(_mm_cvtsi32_si128(both[0] | (both[1] << 16)));
            steps[pair] = _mm512_permutexvar_ps(halves, _mm512_castps128_ps512(wide));
        }
        for (std::size_t row = 0; row < Rows; ++row) {
            const __m512i x = _mm512_broadcast_i64x4(_mm256_load_si256(
                reinterpret_cast<const __m256i*>(tile.bytes[row] + at * product_block)));
            const __m512 step = _mm512_set1_ps(tile.step(row, at));
            for (std::size_t pair = 0; pair < 2; ++pair) {
                const __m512i whole = _mm512_dpbusd_epi32(shifts[pair], x, bytes[pair]);
                sums[pair][row] = _mm512_fmadd_ps(
                    _mm512_cvtepi32_ps(whole), _mm512_mul_ps(steps[pair], step), sums[pair][row]);
            }
        }
    }
    for (std::size_t row = 0; row < Rows; ++row) {
        for (std::size_t pair = 0; pair < 2; ++pair) {
            const __m512 sum = sums[pair][row];
            tile.y[row][out + 2 * pair] = Vectors::sum_of(_mm512_castps512_ps256(sum));
            tile.y[row][out + 2 * pair + 1] = Vectors::sum_of(_mm512_extractf32x8_ps(sum, 1));
        }
    }
}

/// One row reads one output after the other, as they lie. The order of sums is the same.
void one_output_q8_0(const std::uint8_t* weights, std::size_t blocks, const Tile<1>& tile,
                     std::uint32_t out) {
    const __m256i offset = _mm256_set1_epi8(static_cast<char>(0x80));
    const __m256i zero = _mm256_setzero_si256();
    __m256 sum = _mm256_setzero_ps();
    for (std::size_t at = 0; at < blocks; ++at, weights += 34) {
        const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(weights + 2));
        const __m256i x =
            _mm256_load_si256(reinterpret_cast<const __m256i*>(tile.bytes[0] + at * product_block));
        const __m256 step = _mm256_set1_ps(Vectors::half_at(weights));
        const __m256i whole = _mm256_sub_epi32(_mm256_dpbusd_epi32(zero, x, bytes),
                                               _mm256_dpbusd_epi32(zero, offset, bytes));
        sum = _mm256_fmadd_ps(_mm256_cvtepi32_ps(whole),
                              _mm256_mul_ps(step, _mm256_set1_ps(tile.step(0, at))), sum);
    }
    tile.y[0][out] = Vectors::sum_of(sum);
}

/// Half of eight blocks of Q6_K: 128 weights of one output, and the step of each lane.
struct SixBits {
    SixBits(const std::uint8_t* super, std::size_t half) {
        const __m512i low = _mm512_set1_epi8(15);
        const __m512i high = _mm512_set1_epi8(0x30);
        const __m512i nibbles = _mm512_loadu_si512(super + half * 64);
        const __m512i upper = _mm512_broadcast_i64x4(
            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(super + 128 + half * 32)));
        // The upper bits of four blocks share a byte, so each quarter has its own shift.
        const __m512i left = _mm512_set_epi64(2, 2, 2, 2, 4, 4, 4, 4);
        const __m512i right = _mm512_set_epi64(2, 2, 2, 2, 0, 0, 0, 0);
        constexpr int a_and_b_or_c = 0xEA;
        bytes[0] = _mm512_ternarylogic_epi32(
            nibbles, low, _mm512_and_si512(_mm512_sllv_epi64(upper, left), high), a_and_b_or_c);
        bytes[1] = _mm512_ternarylogic_epi32(
            _mm512_srli_epi16(nibbles, 4), low,
            _mm512_and_si512(_mm512_srlv_epi64(upper, right), high), a_and_b_or_c);
        const __m256 eight = _mm256_mul_ps(Vectors::numbers(super + 192 + half * 8),
                                           _mm256_set1_ps(Vectors::half_at(super + 208)));
        const __m512i first = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
        const __m512i second = _mm512_setr_epi32(4, 4, 4, 4, 5, 5, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7);
        const __m512 wide = _mm512_castps256_ps512(eight);
        steps[0] = _mm512_permutexvar_ps(first, wide);
        steps[1] = _mm512_permutexvar_ps(second, wide);
        for (std::size_t part = 0; part < 2; ++part) {
            bytes[part] = _mm512_sub_epi8(bytes[part], _mm512_set1_epi8(32));
            shifts[part] = against_offset(bytes[part]);
        }
    }
    std::array<__m512i, 2> bytes;
    std::array<__m512i, 2> shifts;
    std::array<__m512, 2> steps;
};

/// Two outputs, where one row alone reads one after the other.
template <std::size_t Rows, std::size_t Outputs>
void outputs_q6_k(const std::uint8_t* weights, std::size_t stride, std::size_t blocks,
                  const Tile<Rows>& tile, std::uint32_t out) {
    std::array<std::array<__m512, Rows>, Outputs> sums;
    for (auto& one : sums)
        one.fill(_mm512_setzero_ps());
    for (std::size_t half = 0; half < blocks / 4; ++half) {
        for (std::size_t one = 0; one < Outputs; ++one) {
            const std::uint8_t* super = weights + one * stride + half / 2 * 210;
            tile.template fetch_ahead<2>(super + Outputs * stride + half % 2 * 105);
            const SixBits six(super, half % 2);
            for (std::size_t row = 0; row < Rows; ++row) {
                const std::uint8_t* x = tile.bytes[row] + half * 128;
                const __m512i first =
                    _mm512_dpbusd_epi32(six.shifts[0], _mm512_load_si512(x), six.bytes[0]);
                const __m512i second =
                    _mm512_dpbusd_epi32(six.shifts[1], _mm512_load_si512(x + 64), six.bytes[1]);
                const __m512 both =
                    _mm512_fmadd_ps(_mm512_cvtepi32_ps(second), six.steps[1],
                                    _mm512_mul_ps(_mm512_cvtepi32_ps(first), six.steps[0]));
                sums[one][row] =
                    _mm512_fmadd_ps(both, _mm512_set1_ps(tile.step(row, half)), sums[one][row]);
            }
        }
    }
    for (std::size_t row = 0; row < Rows; ++row)
        for (std::size_t one = 0; one < Outputs; ++one)
            tile.y[row][out + one] = _mm512_reduce_add_ps(sums[one][row]);
}

struct Avx512 {
    static constexpr std::size_t rows_at_once = 8;
    static constexpr bool offsets_activations = true;

    template <std::size_t Numbers>
    static void to_bytes(const float* x, bool as_unsigned, std::uint8_t* bytes, float& step,
                         std::int32_t& sum) {
        std::array<__m512, Numbers / 16> numbers;
        __m512 largest_of = _mm512_setzero_ps();
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            numbers[i] = _mm512_loadu_ps(x + 16 * i);
            largest_of = _mm512_max_ps(largest_of, _mm512_abs_ps(numbers[i]));
        }
        const float largest = _mm512_reduce_max_ps(largest_of);
        step = byte_step<Avx512>(largest);
        const __m512 inverse = _mm512_set1_ps(step == 0 ? 0 : 1 / step);
        const __m128i offset = _mm_set1_epi8(static_cast<char>(as_unsigned ? 0x80 : 0));
        __m512i sums = _mm512_setzero_si512();
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            const __m512i whole = _mm512_cvtps_epi32(_mm512_mul_ps(numbers[i], inverse));
            _mm_storeu_si128(reinterpret_cast<__m128i*>(bytes + 16 * i),
                             _mm_xor_si128(_mm512_cvtsepi32_epi8(whole), offset));
            sums = _mm512_add_epi32(sums, whole);
        }
        sum = _mm512_reduce_add_epi32(sums);
    }

    template <std::size_t Rows>
    static void eight_outputs(WeightLayout layout, const std::uint8_t* weights, std::size_t stride,
                              std::size_t blocks, const Tile<Rows>& tile, std::uint32_t out) {
        if (layout == WeightLayout::q4_0_by_eight) {
            eight_outputs_q4_0<Rows>(weights, blocks, tile, out);
        } else if (layout == WeightLayout::q4_k_by_eight) {
            eight_outputs_q4_k<Rows>(weights, blocks, tile, out);
        } else if (layout == WeightLayout::q6_k) {
            constexpr std::uint32_t outputs = Rows == 1 ? 1 : 2;
            for (std::uint32_t one = 0; one < product_outputs; one += outputs)
                outputs_q6_k<Rows, outputs>(weights + one * stride, stride, blocks, tile,
                                            out + one);
        } else if constexpr (Rows == 1) {
            for (std::uint32_t one = 0; one < product_outputs; ++one)
                one_output_q8_0(weights + one * stride, blocks, tile, out + one);
        } else {
            four_outputs_q8_0<Rows>(weights, stride, blocks, tile, out);
            four_outputs_q8_0<Rows>(weights + 4 * stride, stride, blocks, tile, out + 4);
        }
    }
};

}  // namespace

void row_product_avx512(const RowProductTask& task, ByteRows& scratch) {
    RowTiles<Avx512>::run(task, scratch);
}

}  // namespace molly::engine
#endif
