#pragma once
// The one seam through which all heavy work of training goes: C = op(A) * op(B), on the calling
// thread alone, because lanes are the parallelism (ADR 13). Row after row, float32 in and out.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"

namespace molly::train {

/// A matrix inside a larger array: element (r, c) is at r * stride + c.
struct In {
    const float* at;  ///< null when `rounded` is there
    std::size_t stride;
    bool transposed = false;
    const std::uint16_t* rounded = nullptr;  ///< the same in bf16; for Precision::bf16 only
};

struct Out {
    float* at;
    std::size_t stride;
};

/// What products are made of; sums are always float32. bf16 rounds both factors to 8 bits of
/// mantissa first, twice as fast where the processor multiplies it (Micikevicius et al., 2018).
enum class Precision : std::uint8_t { f32, bf16 };

/// `f32`, `bf16`, or `auto`: bf16 where the processor multiplies it. Errors: invalid_request.
Result<Precision> parse_precision(const std::string& name);
const char* name_of(Precision precision) noexcept;

/// One per thread: it keeps the prepared kernels and the rounded copies.
class Matmul {
public:
    explicit Matmul(Precision precision);
    Matmul(const Matmul&) = delete;
    Matmul& operator=(const Matmul&) = delete;
    Matmul(Matmul&&) = delete;
    Matmul& operator=(Matmul&&) = delete;
    ~Matmul();

    /// c = a * b, or c += a * b. After transposition a is [rows, inner], b [inner, columns].
    void operator()(std::size_t rows, std::size_t columns, std::size_t inner, In a, In b, Out c,
                    bool accumulate = false);

private:
    struct Rounded;
    std::unique_ptr<Rounded> rounded_;  // null: float32
};

/// Makes the library use the calling thread only. Call once in every thread that multiplies.
void keep_matmul_to_this_thread();

/// GFLOP/s that one thread reaches on a cube of 512, rounding included: what fractions of the peak
/// refer to.
double measure_matmul_peak(Precision precision);

}  // namespace molly::train
