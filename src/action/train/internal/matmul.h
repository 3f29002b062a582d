#pragma once
// The one seam through which all heavy work of training goes: C = op(A) * op(B) in float32, on the
// calling thread alone, because lanes are the parallelism (ADR 13). Row after row.
#include <cstddef>

namespace molly::train {

/// A matrix inside a larger array: element (r, c) is at r * stride + c.
struct In {
    const float* at;
    std::size_t stride;
    bool transposed = false;
};

struct Out {
    float* at;
    std::size_t stride;
};

/// c = a * b, or c += a * b. After transposition a is [rows, inner], b [inner, columns].
void multiply(std::size_t rows, std::size_t columns, std::size_t inner, In a, In b, Out c,
              bool accumulate = false);

/// Makes the library use the calling thread only. Call once in every thread that multiplies.
void keep_matmul_to_this_thread();

/// GFLOP/s that one thread reaches on a cube of 512: what fractions of the peak refer to.
double measure_matmul_peak();

}  // namespace molly::train
