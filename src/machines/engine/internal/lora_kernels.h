#pragma once
// y += scale * B (A x) for rows that belong to different adapters, on the CPU. The same layout and
// the same order of additions per row whatever the batch, so that a row's result does not depend on
// its neighbours. Pure.
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace molly::engine {

/// Numbers in one vector of the layout; `in` and `out` of a packed pair are multiples of it.
inline constexpr std::uint32_t lora_lanes = 16;
/// Ranks that are computed together; a packed pair's rank is padded to a multiple with zeros.
inline constexpr std::uint32_t lora_ranks = 4;
inline constexpr std::uint32_t lora_rank_max = 256;

/// Both factors of one linear layer in the order in which they are read, in half precision or in
/// bytes.
struct LoraPair {
    std::uint32_t in = 0;
    std::uint32_t out = 0;
    std::uint32_t rank = 0;                ///< padded
    float scale = 1;                       ///< alpha / rank
    const std::uint16_t* a = nullptr;      ///< shape: [rank / 4, in / 16, 4, 16]
    const std::uint16_t* b = nullptr;      ///< shape: [out / 16, rank, 16]
    const std::int8_t* a_bytes = nullptr;  ///< in place of a; times a_steps
    const std::int8_t* b_bytes = nullptr;  ///< in place of b; times b_steps
    const float* a_steps = nullptr;        ///< shape: [rank]
    const float* b_steps = nullptr;        ///< shape: [out]

    bool empty() const noexcept { return a == nullptr && a_bytes == nullptr; }
};

/// Numbers of a and b together.
constexpr std::size_t lora_numbers(std::uint32_t in, std::uint32_t out, std::uint32_t rank) {
    return std::size_t{rank} * (std::size_t{in} + out);
}
constexpr std::uint32_t lora_padded_rank(std::uint32_t rank) {
    return (rank + lora_ranks - 1) / lora_ranks * lora_ranks;
}
/// Whether the layout can hold a layer of this size.
constexpr bool lora_fits(std::uint64_t in, std::uint64_t out, std::uint64_t rank) {
    return in > 0 && out > 0 && in % lora_lanes == 0 && out % lora_lanes == 0 && rank > 0 &&
           rank <= lora_rank_max && in < (1U << 30U) && out < (1U << 30U);
}

/// What a finite half-precision number is. The smaller exponent is made up for by a multiplication,
/// which is right for subnormal numbers too, and has no branch.
inline float half_to_float(std::uint16_t bits) {
    const float magnitude =
        std::bit_cast<float>(static_cast<std::uint32_t>(bits & 0x7fffU) << 13U) * 0x1p112F;
    return (bits & 0x8000U) != 0 ? -magnitude : magnitude;
}

/// Writes one factor in the layout. `rows` has shape [rank, in] for a and [out, rank] for b.
void pack_lora_a(const std::uint16_t* rows, std::uint32_t in, std::uint32_t rank,
                 std::uint16_t* packed);
void pack_lora_b(const std::uint16_t* rows, std::uint32_t out, std::uint32_t rank,
                 std::uint16_t* packed);

/// The same in bytes: each row of the file, a rank of a or an output of b, has its own step, so
/// that its largest number is 127 steps.
void pack_lora_a(const std::uint16_t* rows, std::uint32_t in, std::uint32_t rank,
                 std::int8_t* packed, float* steps);
void pack_lora_b(const std::uint16_t* rows, std::uint32_t out, std::uint32_t rank,
                 std::int8_t* packed, float* steps);

/// Rows of one matrix, `stride` floats apart.
struct LoraRows {
    const float* x = nullptr;  ///< shape: [rows, in]
    std::size_t x_stride = 0;
    float* y = nullptr;  ///< shape: [rows, out]
    std::size_t y_stride = 0;
};

/// Adds one pair's delta to the rows that `rows` names, times the row's own scale. Only outputs
/// from `out_begin` to `out_end` (multiples of 16) are touched.
struct LoraTask {
    const LoraPair* pair = nullptr;
    std::span<const std::uint32_t> rows;
    std::span<const float> scales;  ///< per entry of `rows`
    std::uint32_t out_begin = 0;
    std::uint32_t out_end = 0;
};

using LoraKernel = void (*)(const LoraTask& task, const LoraRows& matrix);

/// Single numbers of the factors, for whoever wants them in another order.
float lora_a_at(const LoraPair& pair, std::uint32_t rank, std::uint32_t in);
float lora_b_at(const LoraPair& pair, std::uint32_t out, std::uint32_t rank);

/// What every other kernel is checked against.
void lora_reference(const LoraTask& task, const LoraRows& matrix);
void lora_avx2(const LoraTask& task, const LoraRows& matrix);
void lora_avx512(const LoraTask& task, const LoraRows& matrix);
void lora_neon(const LoraTask& task, const LoraRows& matrix);

struct LoraKernelChoice {
    LoraKernel run = nullptr;
    const char* name = "";
};
/// The fastest kernel of this processor.
LoraKernelChoice best_lora_kernel();

}  // namespace molly::engine
