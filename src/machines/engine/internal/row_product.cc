#include "engine/internal/row_product.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <vector>

#include "engine/internal/lora_kernels.h"

namespace molly::engine {
namespace {

constexpr float bytes_max = 127;
constexpr float least_largest = 1e-30F;  // below it a block is zero, and its step has no inverse

struct Block {
    float step = 0;
    float less = 0;  // what is taken away from each weight
    int weights[product_block] = {};

    float times(std::span<const int> bytes, float byte_step) const {
        int sum = 0;
        int all = 0;
        for (std::uint32_t i = 0; i < product_block; ++i) {
            sum += weights[i] * bytes[i];
            all += bytes[i];
        }
        return static_cast<float>(sum) * (step * byte_step) -
               static_cast<float>(all) * (less * byte_step);
    }
};

float step_at(const std::uint8_t* from) {
    std::uint16_t half = 0;
    std::memcpy(&half, from, sizeof(half));
    return half_to_float(half);
}

/// Both counts of steps in six bits, the upper two of half of the outputs elsewhere, as
/// ggml-cpu/repack.cpp packs them.
Block block_of_q4_k(const RowProductTask& task, std::uint32_t out, std::uint32_t at) {
    const std::uint32_t lane = out % product_outputs;
    const std::size_t supers = task.in / least_inputs(task.layout);
    const std::uint8_t* from =
        task.weights + (std::size_t{out / product_outputs} * supers + at / 8) * 1152;
    const std::uint8_t* packed = from + 32 + std::size_t{at % 8} * 12;
    const std::uint32_t low = lane % 4;
    int steps = packed[low] & 63;
    int less = packed[4 + low] & 63;
    if (lane >= 4) {
        steps = (packed[8 + low] & 15) | (packed[low] >> 6 << 4);
        less = (packed[8 + low] >> 4) | (packed[4 + low] >> 6 << 4);
    }
    Block block;
    block.step = step_at(from + 2UL * lane) * static_cast<float>(steps);
    block.less = step_at(from + 16 + 2UL * lane) * static_cast<float>(less);
    const std::uint8_t* nibbles = from + 128 + std::size_t{at % 8 / 2} * 256 + lane * 8UL;
    for (std::uint32_t i = 0; i < product_block; ++i) {
        const std::uint8_t both = nibbles[std::size_t{i / 8} * 64 + i % 8];
        block.weights[i] = at % 2 == 0 ? both & 15 : both >> 4;
    }
    return block;
}

/// Counts of steps are taken into the weights, because a block has two of them.
Block block_of_q6_k(const RowProductTask& task, std::uint32_t out, std::uint32_t at) {
    const std::uint8_t* from =
        task.weights + out * weight_row_bytes(task.layout, task.in) + at / 8 * 210UL;
    const std::uint32_t half = at % 8 / 4;
    const std::uint32_t part = at % 4;
    Block block;
    block.step = step_at(from + 208);
    for (std::uint32_t i = 0; i < product_block; ++i) {
        const std::uint8_t both = from[half * 64 + part % 2 * 32 + i];
        const int low = part < 2 ? both & 15 : both >> 4;
        const int high = from[128 + half * 32 + i] >> (2 * part) & 3;
        const auto steps = static_cast<std::int8_t>(from[192 + at % 8 * 2 + i / 16]);
        block.weights[i] = ((low | (high << 4)) - 32) * steps;
    }
    return block;
}

Block block_of(const RowProductTask& task, std::uint32_t out, std::uint32_t at) {
    if (task.layout == WeightLayout::q4_k_by_eight) return block_of_q4_k(task, out, at);
    if (task.layout == WeightLayout::q6_k) return block_of_q6_k(task, out, at);
    Block block;
    if (task.layout == WeightLayout::q8_0) {
        const std::uint8_t* from =
            task.weights + out * weight_row_bytes(task.layout, task.in) + at * 34UL;
        block.step = step_at(from);
        for (std::uint32_t i = 0; i < product_block; ++i)
            block.weights[i] = static_cast<std::int8_t>(from[2 + i]);
        return block;
    }
    const std::uint32_t lane = out % product_outputs;
    const std::uint8_t* from =
        task.weights + (std::size_t{out / product_outputs} * (task.in / product_block) + at) * 144;
    block.step = step_at(from + 2UL * lane);
    for (std::uint32_t i = 0; i < product_block; ++i) {
        const std::uint32_t byte = i % 16;  // the upper half of a block is in the upper nibbles
        const std::uint8_t both = from[16 + byte / 8 * 64 + lane * 8 + byte % 8];
        const int nibble = (i < 16 ? both : both >> 4) & 15;
        block.weights[i] = (nibble ^ 8) - 8;
    }
    return block;
}

}  // namespace

void row_product_reference(const RowProductTask& task, ByteRows& /*scratch*/) {
    const std::uint32_t group = numbers_per_step(task.layout);
    std::vector<int> bytes(group);
    for (std::uint32_t row = 0; row < task.rows; ++row) {
        const float* x = task.x + row * task.x_stride;
        float* y = task.y + row * task.y_stride;
        std::fill(y + task.out_begin, y + task.out_end, 0.0F);
        for (std::uint32_t first = 0; first < task.in; first += group) {
            float largest = 0;
            for (std::uint32_t i = 0; i < group; ++i)
                largest = std::max(largest, std::abs(x[first + i]));
            if (largest < least_largest) continue;
            const float step = largest / bytes_max;
            for (std::uint32_t i = 0; i < group; ++i)
                bytes[i] = static_cast<int>(std::nearbyint(x[first + i] * (1 / step)));
            for (std::uint32_t out = task.out_begin; out < task.out_end; ++out)
                for (std::uint32_t at = 0; at < group; at += product_block)
                    y[out] += block_of(task, out, (first + at) / product_block)
                                  .times(std::span(bytes).subspan(at, product_block), step);
        }
    }
}

std::vector<RowProductChoice> row_products() {
    std::vector<RowProductChoice> found;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512vnni"))
        found.push_back({row_product_avx512, "avx512-vnni"});
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                      __builtin_cpu_supports("f16c");
    if (avx2 && __builtin_cpu_supports("avxvnni"))
        found.push_back({row_product_avx_vnni, "avx-vnni"});
    if (avx2) found.push_back({row_product_avx2, "avx2"});
#endif
    return found;
}

RowProductChoice best_row_product() {
    const auto found = row_products();
    return found.empty() ? RowProductChoice{} : found.front();
}

}  // namespace molly::engine
