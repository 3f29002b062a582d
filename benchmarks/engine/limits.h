#pragma once
// What the machine can do: how fast memory is read, and how fast ggml multiplies.
#include <cstdint>

namespace molly::bench {

/// Bytes per second that `threads` threads read from memory, the best of several passes.
double memory_bandwidth(std::uint32_t threads);

/// Floating-point operations per second of ggml's product of a 4096 x 4096 Q4_0 matrix, in the
/// layout that the engine's weights have, with `rows` rows; the best of several.
double matmul_speed(std::uint32_t threads, std::int64_t rows);

}  // namespace molly::bench
