#pragma once
// The kernels of row_product.h for vectors of 256 bits. `Dot` multiplies bytes; its type belongs to
// one file, because the files are compiled for different processors.
#include <array>
#include <cstring>

#include <immintrin.h>

#include "engine/internal/row_product_tiles.h"

namespace molly::engine {

/// What kernels of any width need.
template <class Kernel>
struct Vectors256 {
    static std::int64_t eight_bytes(const std::uint8_t* from) {
        std::int64_t eight = 0;
        std::memcpy(&eight, from, sizeof(eight));
        return eight;
    }

    static float half_at(const std::uint8_t* from) {
        std::uint16_t half = 0;
        std::memcpy(&half, from, sizeof(half));
        return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(half)));
    }

    static float sum_of(__m256 lanes) {
        __m128 sum = _mm_add_ps(_mm256_castps256_ps128(lanes), _mm256_extractf128_ps(lanes, 1));
        sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
        return _mm_cvtss_f32(_mm_add_ss(sum, _mm_movehdup_ps(sum)));
    }

    /// A number for each of eight outputs, from six bits of which four outputs' upper ones lie
    /// apart.
    static __m256 six_bits(std::uint32_t first, std::uint32_t second) {
        const std::uint32_t upper = (second & 0x0f0f0f0fU) | ((first >> 6U & 0x03030303U) << 4U);
        const std::uint64_t bytes = (first & 0x3f3f3f3fU) | (std::uint64_t{upper} << 32U);
        return _mm256_cvtepi32_ps(
            _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<std::int64_t>(bytes))));
    }

    /// A number for each of eight signed bytes.
    static __m256 numbers(const std::uint8_t* from) {
        return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_cvtsi64_si128(eight_bytes(from))));
    }
};

/// `Dot::add(sums, a, b)` adds products of four neighbouring unsigned bytes of a and signed ones of
/// b to each lane. Where `Dot::offsets_activations`, any of them; else those whose products of two
/// fit in 16 bits.
template <class Dot>
struct RowProduct256 : Vectors256<Dot> {
    using Vectors256<Dot>::eight_bytes;
    using Vectors256<Dot>::half_at;
    using Vectors256<Dot>::numbers;
    using Vectors256<Dot>::six_bits;
    using Vectors256<Dot>::sum_of;
    static constexpr std::size_t rows_at_once = 4;
    static constexpr bool offsets_activations = Dot::offsets_activations;
    template <std::size_t Rows>
    using Tile = RowTile<RowProduct256, Rows>;

    static __m256i bytes_at(const std::uint8_t* from) {
        return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    }

    static __m256i upper_nibbles(__m256i bytes, __m256i low) {
        return _mm256_and_si256(_mm256_srli_epi16(bytes, 4), low);
    }

    /// Sums of two neighbouring lanes each: of outputs 0 to 3, and of 4 to 7.
    static __m256 sum_of_pairs(__m256 first, __m256 second) {
        const __m256d pairs = _mm256_castps_pd(_mm256_hadd_ps(first, second));
        return _mm256_castpd_ps(_mm256_permute4x64_pd(pairs, 0b11'01'10'00));
    }

    /// A number of each of four outputs for both of its lanes.
    [[gnu::always_inline]] static __m256 twice(__m256 eight, std::size_t half) {
        const auto first = static_cast<int>(half * 4);
        return _mm256_permutevar8x32_ps(
            eight,
            _mm256_add_epi32(_mm256_set1_epi32(first), _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3)));
    }

    /// Products of four outputs' bytes with a block of each row, added to each row's sum.
    template <std::size_t Rows>
    [[gnu::always_inline]] static void add_four_outputs(const std::array<__m256i, 4>& quarters,
                                                        __m256 steps, bool shifted, std::size_t at,
                                                        const Tile<Rows>& tile,
                                                        std::array<__m256, Rows>& sums) {
        for (std::size_t row = 0; row < Rows; ++row) {
            const std::uint8_t* x = tile.bytes[row] + at * product_block;
            __m256i whole = _mm256_set1_epi32(shifted ? tile.shift(row, at) : 0);
            for (std::size_t quarter = 0; quarter < 4; ++quarter)
                whole = Dot::add(whole, quarters[quarter],
                                 _mm256_set1_epi64x(eight_bytes(x + quarter * 8)));
            sums[row] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(whole),
                                        _mm256_mul_ps(steps, _mm256_set1_ps(tile.step(row, at))),
                                        sums[row]);
        }
    }

    template <std::size_t Rows>
    static void eight_outputs_q4_0(const std::uint8_t* weights, std::size_t blocks,
                                   const Tile<Rows>& tile, std::uint32_t out) {
        const __m256i low = _mm256_set1_epi8(15);
        const __m256i signs = _mm256_set1_epi8(static_cast<char>(0x88));  // which ggml keeps
        std::array<std::array<__m256, Rows>, 2> sums;
        for (auto& half : sums)
            half.fill(_mm256_setzero_ps());
        for (std::size_t at = 0; at < blocks; ++at, weights += 144) {
            tile.template fetch_ahead<2>(weights + 8 * 144);
            const __m256 steps =
                _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(weights)));
            for (std::size_t half = 0; half < 2; ++half) {
                const __m256i first = _mm256_xor_si256(bytes_at(weights + 16 + half * 32), signs);
                const __m256i second = _mm256_xor_si256(bytes_at(weights + 80 + half * 32), signs);
                add_four_outputs<Rows>({_mm256_and_si256(first, low), _mm256_and_si256(second, low),
                                        upper_nibbles(first, low), upper_nibbles(second, low)},
                                       twice(steps, half), true, at, tile, sums[half]);
            }
        }
        for (std::size_t row = 0; row < Rows; ++row)
            _mm256_storeu_ps(tile.y[row] + out, sum_of_pairs(sums[0][row], sums[1][row]));
    }

    template <std::size_t Rows>
    static void eight_outputs_q4_k(const std::uint8_t* weights, std::size_t blocks,
                                   const Tile<Rows>& tile, std::uint32_t out) {
        const __m256i low = _mm256_set1_epi8(15);
        std::array<std::array<__m256, Rows>, 2> sums;
        std::array<__m256, Rows> less;
        for (auto& half : sums)
            half.fill(_mm256_setzero_ps());
        less.fill(_mm256_setzero_ps());
        for (std::size_t at = 0; at < blocks; ++at) {
            const std::uint8_t* super = weights + at / 8 * 1152;
            const auto* halves = reinterpret_cast<const __m128i*>(super);
            std::array<std::uint32_t, 3> packed{};
            std::memcpy(packed.data(), super + 32 + at % 8 * 12, sizeof(packed));
            const __m256 steps = _mm256_mul_ps(_mm256_cvtph_ps(_mm_loadu_si128(halves)),
                                               six_bits(packed[0], packed[2]));
            const __m256 taken = _mm256_mul_ps(_mm256_cvtph_ps(_mm_loadu_si128(halves + 1)),
                                               six_bits(packed[1], packed[2] >> 4U));
            const std::uint8_t* nibbles = super + 128 + at % 8 / 2 * 256;
            tile.template fetch_ahead<4>(nibbles + 1152);
            for (std::size_t half = 0; half < 2; ++half) {
                std::array<__m256i, 4> quarters;
                for (std::size_t quarter = 0; quarter < 4; ++quarter) {
                    const __m256i both = bytes_at(nibbles + quarter * 64 + half * 32);
                    quarters[quarter] =
                        at % 2 == 0 ? _mm256_and_si256(both, low) : upper_nibbles(both, low);
                }
                add_four_outputs<Rows>(quarters, twice(steps, half), false, at, tile, sums[half]);
            }
            for (std::size_t row = 0; row < Rows; ++row) {
                const float sum = tile.step(row, at) * static_cast<float>(tile.shift(row, at));
                less[row] = _mm256_fmadd_ps(taken, _mm256_set1_ps(sum), less[row]);
            }
        }
        for (std::size_t row = 0; row < Rows; ++row)
            _mm256_storeu_ps(tile.y[row] + out,
                             _mm256_sub_ps(sum_of_pairs(sums[0][row], sums[1][row]), less[row]));
    }

    /// 32 signed weights of one output, and the step of each lane.
    struct SignedBlock {
        [[gnu::always_inline]] SignedBlock(__m256i signed_bytes, __m256 lane_steps)
            : bytes(signed_bytes), steps(lane_steps) {
            const __m256i zero = _mm256_setzero_si256();
            if constexpr (Dot::offsets_activations) {
                // What the weights make of the offset 128 of their activations, negated.
                const __m256i offset = _mm256_set1_epi8(static_cast<char>(0x80));
                other = _mm256_sub_epi32(zero, Dot::add(zero, offset, bytes));
            } else {
                other = _mm256_abs_epi8(bytes);
            }
        }
        [[gnu::always_inline]] __m256i times(__m256i x) const {
            if constexpr (Dot::offsets_activations) return Dot::add(other, x, bytes);
            return Dot::add(_mm256_setzero_si256(), other, _mm256_sign_epi8(x, bytes));
        }
        template <std::size_t Rows>
        [[gnu::always_inline]] void add(const Tile<Rows>& tile, std::size_t at, std::size_t group,
                                        std::array<__m256, Rows>& sums) const {
            for (std::size_t row = 0; row < Rows; ++row) {
                const __m256i whole = times(bytes_at(tile.bytes[row] + at * product_block));
                sums[row] = _mm256_fmadd_ps(
                    _mm256_cvtepi32_ps(whole),
                    _mm256_mul_ps(steps, _mm256_set1_ps(tile.step(row, group))), sums[row]);
            }
        }
        __m256i bytes;
        __m256i other;  ///< the offset's share, or the weights without their signs
        __m256 steps;
    };

    /// Outputs side by side; one row alone reads one after the other, as they lie.
    template <std::size_t Rows, std::size_t Outputs>
    static void outputs_q8_0(const std::uint8_t* weights, std::size_t stride, std::size_t blocks,
                             const Tile<Rows>& tile, std::uint32_t out) {
        std::array<std::array<__m256, Rows>, Outputs> sums;
        for (auto& one : sums)
            one.fill(_mm256_setzero_ps());
        for (std::size_t at = 0; at < blocks; ++at, weights += 34) {
            for (std::size_t one = 0; one < Outputs; ++one) {
                const std::uint8_t* from = weights + one * stride;
                tile.template fetch_ahead<1>(from + Outputs * stride);
                SignedBlock(bytes_at(from + 2), _mm256_set1_ps(half_at(from)))
                    .template add<Rows>(tile, at, at, sums[one]);
            }
        }
        for (std::size_t row = 0; row < Rows; ++row)
            for (std::size_t one = 0; one < Outputs; ++one)
                tile.y[row][out + one] = sum_of(sums[one][row]);
    }

    /// The weights of one quarter of half of eight blocks of Q6_K.
    [[gnu::always_inline]] static __m256i six_bit_weights(const std::uint8_t* super,
                                                          std::size_t half, std::size_t quarter) {
        const __m256i low = _mm256_set1_epi8(15);
        const __m256i both = bytes_at(super + half * 64 + quarter % 2 * 32);
        const __m256i nibbles =
            quarter < 2 ? _mm256_and_si256(both, low) : upper_nibbles(both, low);
        const __m256i four = bytes_at(super + 128 + half * 32);
        const __m256i moved = quarter == 0   ? _mm256_slli_epi16(four, 4)
                              : quarter == 1 ? _mm256_slli_epi16(four, 2)
                              : quarter == 2 ? four
                                             : _mm256_srli_epi16(four, 2);
        const __m256i upper = _mm256_and_si256(moved, _mm256_set1_epi8(0x30));
        return _mm256_sub_epi8(_mm256_or_si256(nibbles, upper), _mm256_set1_epi8(32));
    }

    template <std::size_t Rows, std::size_t Outputs>
    static void outputs_q6_k(const std::uint8_t* weights, std::size_t stride, std::size_t blocks,
                             const Tile<Rows>& tile, std::uint32_t out) {
        std::array<std::array<__m256, Rows>, Outputs> sums;
        for (auto& one : sums)
            one.fill(_mm256_setzero_ps());
        for (std::size_t half = 0; half < blocks / 4; ++half) {
            for (std::size_t one = 0; one < Outputs; ++one) {
                const std::uint8_t* super = weights + one * stride + half / 2 * 210;
                tile.template fetch_ahead<2>(super + Outputs * stride + half % 2 * 105);
                const __m256 steps = _mm256_mul_ps(numbers(super + 192 + half % 2 * 8),
                                                   _mm256_set1_ps(half_at(super + 208)));
                for (std::size_t quarter = 0; quarter < 4; ++quarter) {
                    const auto first = static_cast<int>(2 * quarter);
                    const __m256i lanes = _mm256_setr_epi32(first, first, first, first, first + 1,
                                                            first + 1, first + 1, first + 1);
                    SignedBlock(six_bit_weights(super, half % 2, quarter),
                                _mm256_permutevar8x32_ps(steps, lanes))
                        .template add<Rows>(tile, half * 4 + quarter, half, sums[one]);
                }
            }
        }
        for (std::size_t row = 0; row < Rows; ++row)
            for (std::size_t one = 0; one < Outputs; ++one)
                tile.y[row][out + one] = sum_of(sums[one][row]);
    }

    template <std::size_t Numbers>
    static void to_bytes(const float* x, bool as_unsigned, std::uint8_t* bytes, float& step,
                         std::int32_t& sum) {
        const __m256 no_sign = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
        __m256 most = _mm256_setzero_ps();
        for (std::size_t i = 0; i < Numbers; i += 8)
            most = _mm256_max_ps(most, _mm256_and_ps(no_sign, _mm256_loadu_ps(x + i)));
        __m128 four = _mm_max_ps(_mm256_castps256_ps128(most), _mm256_extractf128_ps(most, 1));
        four = _mm_max_ps(four, _mm_movehl_ps(four, four));
        const float largest = _mm_cvtss_f32(_mm_max_ss(four, _mm_movehdup_ps(four)));
        step = byte_step<RowProduct256>(largest);
        const __m256 inverse = _mm256_set1_ps(step == 0 ? 0 : 1 / step);
        const __m256i offset = _mm256_set1_epi8(static_cast<char>(as_unsigned ? 0x80 : 0));
        const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
        __m256i sums = _mm256_setzero_si256();
        for (std::size_t i = 0; i < Numbers; i += 32) {
            std::array<__m256i, 4> whole;
            for (std::size_t k = 0; k < 4; ++k) {
                whole[k] =
                    _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + i + 8 * k), inverse));
                sums = _mm256_add_epi32(sums, whole[k]);
            }
            const __m256i packed = _mm256_packs_epi16(_mm256_packs_epi32(whole[0], whole[1]),
                                                      _mm256_packs_epi32(whole[2], whole[3]));
            _mm256_storeu_si256(
                reinterpret_cast<__m256i*>(bytes + i),
                _mm256_xor_si256(_mm256_permutevar8x32_epi32(packed, order), offset));
        }
        __m128i few =
            _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
        few = _mm_add_epi32(few, _mm_shuffle_epi32(few, 0b01'00'11'10));
        sum = _mm_cvtsi128_si32(_mm_add_epi32(few, _mm_shuffle_epi32(few, 0b10'11'00'01)));
    }

    template <std::size_t Rows>
    static void eight_outputs(WeightLayout layout, const std::uint8_t* weights, std::size_t stride,
                              std::size_t blocks, const Tile<Rows>& tile, std::uint32_t out) {
        constexpr std::uint32_t outputs = Rows == 1 ? 1 : 2;
        if (layout == WeightLayout::q4_0_by_eight)
            return eight_outputs_q4_0<Rows>(weights, blocks, tile, out);
        if (layout == WeightLayout::q4_k_by_eight)
            return eight_outputs_q4_k<Rows>(weights, blocks, tile, out);
        for (std::uint32_t one = 0; one < product_outputs; one += outputs) {
            if (layout == WeightLayout::q6_k) {
                outputs_q6_k<Rows, outputs>(weights + one * stride, stride, blocks, tile,
                                            out + one);
            } else {
                outputs_q8_0<Rows, outputs>(weights + one * stride, stride, blocks, tile,
                                            out + one);
            }
        }
    }
};

}  // namespace molly::engine
