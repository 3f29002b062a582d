// From the rows of a file to the order in which the kernels read.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "engine/internal/lora_kernels.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace molly::engine {
namespace {

/// Sixteen outputs' numbers of all ranks, as the file has them, to [rank, 16].
void turn_block_plain(const std::uint16_t* block, std::uint32_t rank, std::uint32_t first,
                      std::uint16_t* packed) {
    for (std::uint32_t r = first; r < rank; ++r)
        for (std::uint32_t lane = 0; lane < lora_lanes; ++lane)
            packed[std::size_t{r} * lora_lanes + lane] = block[std::size_t{lane} * rank + r];
}

#if defined(__SSE2__)
constexpr std::uint32_t square = 8;

/// Eight rows of eight halves, turned: row r of `packed`, sixteen halves apart, is column r.
void turn_square(const std::uint16_t* rows, std::size_t stride, std::uint16_t* packed) {
    const auto row = [&](std::size_t at) {
        return _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows + at * stride));
    };
    const __m128i a0 = _mm_unpacklo_epi16(row(0), row(1));
    const __m128i a1 = _mm_unpackhi_epi16(row(0), row(1));
    const __m128i a2 = _mm_unpacklo_epi16(row(2), row(3));
    const __m128i a3 = _mm_unpackhi_epi16(row(2), row(3));
    const __m128i a4 = _mm_unpacklo_epi16(row(4), row(5));
    const __m128i a5 = _mm_unpackhi_epi16(row(4), row(5));
    const __m128i a6 = _mm_unpacklo_epi16(row(6), row(7));
    const __m128i a7 = _mm_unpackhi_epi16(row(6), row(7));
    const __m128i b0 = _mm_unpacklo_epi32(a0, a2);
    const __m128i b1 = _mm_unpackhi_epi32(a0, a2);
    const __m128i b2 = _mm_unpacklo_epi32(a1, a3);
    const __m128i b3 = _mm_unpackhi_epi32(a1, a3);
    const __m128i b4 = _mm_unpacklo_epi32(a4, a6);
    const __m128i b5 = _mm_unpackhi_epi32(a4, a6);
    const __m128i b6 = _mm_unpacklo_epi32(a5, a7);
    const __m128i b7 = _mm_unpackhi_epi32(a5, a7);
    const auto store = [&](std::size_t at, __m128i value) {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(packed + at * lora_lanes), value);
    };
    store(0, _mm_unpacklo_epi64(b0, b4));
    store(1, _mm_unpackhi_epi64(b0, b4));
    store(2, _mm_unpacklo_epi64(b1, b5));
    store(3, _mm_unpackhi_epi64(b1, b5));
    store(4, _mm_unpacklo_epi64(b2, b6));
    store(5, _mm_unpackhi_epi64(b2, b6));
    store(6, _mm_unpacklo_epi64(b3, b7));
    store(7, _mm_unpackhi_epi64(b3, b7));
}

void turn_block(const std::uint16_t* block, std::uint32_t rank, std::uint16_t* packed) {
    std::uint32_t r = 0;
    for (; r + square <= rank; r += square)
        for (std::uint32_t lane = 0; lane < lora_lanes; lane += square)
            turn_square(block + std::size_t{lane} * rank + r, rank,
                        packed + std::size_t{r} * lora_lanes + lane);
    turn_block_plain(block, rank, r, packed);
}
#else
void turn_block(const std::uint16_t* block, std::uint32_t rank, std::uint16_t* packed) {
    turn_block_plain(block, rank, 0, packed);
}
#endif

/// One row in steps of its largest number. `numbers` has room for the row.
void to_bytes(const std::uint16_t* row, std::uint32_t count, float* numbers, std::int8_t* bytes,
              float& step) {
    for (std::uint32_t i = 0; i < count; ++i)
        numbers[i] = half_to_float(row[i]);
    float largest = 0;
    for (std::uint32_t i = 0; i < count; ++i)
        largest = std::max(largest, std::abs(numbers[i]));
    constexpr float most = 127;
    step = largest / most;
    const float steps = largest > 0 ? most / largest : 0;
    for (std::uint32_t i = 0; i < count; ++i) {
        const float scaled = numbers[i] * steps;
        bytes[i] = static_cast<std::int8_t>(
            static_cast<std::int32_t>(scaled + (scaled < 0 ? -0.5F : 0.5F)));
    }
}

}  // namespace

void pack_lora_a(const std::uint16_t* rows, std::uint32_t in, std::uint32_t rank,
                 std::uint16_t* packed) {
    for (std::uint32_t first = 0; first < rank; first += lora_ranks) {
        for (std::uint32_t at = 0; at < in; at += lora_lanes) {
            for (std::uint32_t r = first; r < first + lora_ranks; ++r, packed += lora_lanes) {
                if (r < rank) {
                    std::memcpy(packed, rows + std::size_t{r} * in + at, lora_lanes * 2);
                } else {
                    std::memset(packed, 0, lora_lanes * 2);
                }
            }
        }
    }
}

void pack_lora_b(const std::uint16_t* rows, std::uint32_t out, std::uint32_t rank,
                 std::uint16_t* packed) {
    const std::size_t padded = lora_padded_rank(rank);
    for (std::uint32_t first = 0; first < out; first += lora_lanes, packed += padded * lora_lanes) {
        turn_block(rows + std::size_t{first} * rank, rank, packed);
        std::memset(packed + std::size_t{rank} * lora_lanes, 0, (padded - rank) * lora_lanes * 2);
    }
}

void pack_lora_a(const std::uint16_t* rows, std::uint32_t in, std::uint32_t rank,
                 std::int8_t* packed, float* steps) {
    const std::uint32_t padded = lora_padded_rank(rank);
    std::fill(packed, packed + std::size_t{padded} * in, std::int8_t{0});
    std::fill(steps, steps + padded, 0.0F);
    std::vector<std::int8_t> bytes(in);
    std::vector<float> numbers(in);
    for (std::uint32_t r = 0; r < rank; ++r) {
        to_bytes(rows + std::size_t{r} * in, in, numbers.data(), bytes.data(), steps[r]);
        std::int8_t* at = packed + std::size_t{r / lora_ranks} * in * lora_ranks +
                          std::size_t{r % lora_ranks} * lora_lanes;
        for (std::uint32_t i = 0; i < in; i += lora_lanes, at += lora_lanes * lora_ranks)
            std::memcpy(at, bytes.data() + i, lora_lanes);
    }
}

void pack_lora_b(const std::uint16_t* rows, std::uint32_t out, std::uint32_t rank,
                 std::int8_t* packed, float* steps) {
    const std::size_t padded = lora_padded_rank(rank);
    std::fill(packed, packed + padded * out, std::int8_t{0});
    std::array<std::int8_t, lora_rank_max> bytes{};
    std::array<float, lora_rank_max> numbers{};
    for (std::uint32_t o = 0; o < out; ++o) {
        to_bytes(rows + std::size_t{o} * rank, rank, numbers.data(), bytes.data(), steps[o]);
        std::int8_t* at =
            packed + std::size_t{o / lora_lanes} * padded * lora_lanes + o % lora_lanes;
        for (std::uint32_t r = 0; r < rank; ++r)
            at[std::size_t{r} * lora_lanes] = bytes[r];
    }
}

}  // namespace molly::engine
