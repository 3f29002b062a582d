#include "engine/internal/lora_kernels.h"

#include <algorithm>
#include <array>

namespace molly::engine {

float lora_a_at(const LoraPair& pair, std::uint32_t rank, std::uint32_t in) {
    const std::size_t at = std::size_t{rank / lora_ranks} * pair.in * lora_ranks +
                           std::size_t{in / lora_lanes} * lora_lanes * lora_ranks +
                           std::size_t{rank % lora_ranks} * lora_lanes + in % lora_lanes;
    if (pair.a_bytes != nullptr) return pair.a_bytes[at] * pair.a_steps[rank];
    return half_to_float(pair.a[at]);
}

float lora_b_at(const LoraPair& pair, std::uint32_t out, std::uint32_t rank) {
    const std::size_t at =
        (std::size_t{out / lora_lanes} * pair.rank + rank) * lora_lanes + out % lora_lanes;
    if (pair.b_bytes != nullptr) return pair.b_bytes[at] * pair.b_steps[out];
    return half_to_float(pair.b[at]);
}

void lora_reference(const LoraTask& task, const LoraRows& matrix) {
    const LoraPair& pair = *task.pair;
    std::array<float, lora_rank_max> middle{};
    for (std::size_t n = 0; n < task.rows.size(); ++n) {
        const float* x = matrix.x + task.rows[n] * matrix.x_stride;
        float* y = matrix.y + task.rows[n] * matrix.y_stride;
        for (std::uint32_t r = 0; r < pair.rank; ++r) {
            float sum = 0;
            for (std::uint32_t i = 0; i < pair.in; ++i)
                sum += lora_a_at(pair, r, i) * x[i];
            middle[r] = sum * pair.scale * task.scales[n];
        }
        for (std::uint32_t o = task.out_begin; o < task.out_end; ++o) {
            float sum = 0;
            for (std::uint32_t r = 0; r < pair.rank; ++r)
                sum += lora_b_at(pair, o, r) * middle[r];
            y[o] += sum;
        }
    }
}

LoraKernelChoice best_lora_kernel() {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) return {lora_avx512, "avx512"};
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
        __builtin_cpu_supports("f16c"))
        return {lora_avx2, "avx2"};
#elif defined(__aarch64__)
    return {lora_neon, "neon"};
#endif
    return {lora_reference, "plain"};
}

}  // namespace molly::engine
