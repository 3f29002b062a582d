#pragma once
// The element-wise passes of training, compiled once per instruction set and chosen at run time.
// Every reduction has a fixed order, so that the same processor gives the same bits. Plain arrays,
// row after row; no thread of its own.
#include <cstddef>
#include <cstdint>

namespace molly::train {

/// Adam's constants for one step; `rate` includes the schedule.
struct AdamStep {
    float rate = 0;
    float decay = 0;  ///< decoupled; 0 for norms and embeddings
    float beta_1 = 0.9F;
    float beta_2 = 0.99F;
    float epsilon = 1e-8F;
    float correction_1 = 1;    ///< 1 / (1 - beta_1^t)
    float correction_2 = 1;    ///< 1 / (1 - beta_2^t)
    float gradient_scale = 1;  ///< from clipping
};

/// One block of attention rows; row r may look at columns [first[r], row_start + r], counted from
/// `column_start`.
struct AttentionBlock {
    std::size_t rows = 0;
    std::size_t columns = 0;
    std::size_t stride = 0;  ///< floats from row to row of scores
    std::size_t row_start = 0;
    std::size_t column_start = 0;
    const std::uint32_t* first = nullptr;  // shape: [rows]
    float scale = 1;
};

struct Kernels {
    const char* name;

    /// out = x / rms(x) * weight; inverse[r] = 1 / rms. x: [rows, width].
    void (*norm_forward)(std::size_t rows, std::size_t width, float epsilon, const float* x,
                         const float* weight, float* out, float* inverse);
    /// dx += gradient of the norm; weight_gradient (may be null) += its own.
    void (*norm_backward)(std::size_t rows, std::size_t width, const float* x, const float* weight,
                          const float* inverse, const float* dout, float* dx,
                          float* weight_gradient);
    /// Turns neighbouring pairs of every head by the angles of its position; `direction` -1 undoes
    /// it. x: [rows, stride], cosine and sine: [rows, head_width / 2].
    void (*rotate)(std::size_t rows, std::size_t heads, std::size_t head_width, float direction,
                   const float* cosine, const float* sine, float* x);
    /// The same for pairs (i, i + head_width / 2), as NeoX has it.
    void (*rotate_halves)(std::size_t rows, std::size_t heads, std::size_t head_width,
                          float direction, const float* cosine, const float* sine, float* x);
    /// out = silu(gate) * up.
    void (*swiglu_forward)(std::size_t count, const float* gate, const float* up, float* out);
    /// In: dout in `out`. Leaves out = silu(gate) * up, and writes both gradients.
    void (*swiglu_backward)(std::size_t count, const float* gate, const float* up, float* out,
                            float* dgate, float* dup);
    /// The same two with gelu (its tanh form) in place of silu.
    void (*geglu_forward)(std::size_t count, const float* gate, const float* up, float* out);
    void (*geglu_backward)(std::size_t count, const float* gate, const float* up, float* out,
                           float* dgate, float* dup);
    /// scores become probabilities; log_sum[r] = log of the sum of exp(scale * score).
    void (*softmax)(const AttentionBlock& block, float* scores, float* log_sum);
    /// scores become probabilities again, from log_sum.
    void (*softmax_again)(const AttentionBlock& block, float* scores, const float* log_sum);
    /// dscores = probability * (dprobability - mean) * scale, in place of dprobability.
    void (*softmax_backward)(const AttentionBlock& block, const float* probability,
                             const float* mean, float* dprobability);
    /// logits become their gradient, times weight[r] (0: the token does not count). Gives the sum
    /// of weight * (-log p(target) + z * log(Z)^2). logits: [rows, stride], `width` of them used.
    double (*cross_entropy)(std::size_t rows, std::size_t width, std::size_t stride, float z,
                            const std::int32_t* targets, const float* weight, float* logits);
    /// Rounds to the nearest bf16, ties to even.
    void (*to_bf16)(std::size_t count, const float* x, std::uint16_t* out);
    /// One row of ggml's f16, q8_0 and q4_0 blocks as floats.
    void (*from_f16)(std::size_t count, const std::byte* row, float* out);
    void (*from_q8_0)(std::size_t count, const std::byte* row, float* out);
    void (*from_q4_0)(std::size_t count, const std::byte* row, float* out);
    /// The same as bf16, in one pass.
    void (*q8_0_to_bf16)(std::size_t count, const std::byte* row, std::uint16_t* out);
    void (*q4_0_to_bf16)(std::size_t count, const std::byte* row, std::uint16_t* out);
    /// out = x * keep / (1 - share), where keep is 0 for a `share` of the elements that `key` and
    /// the element's place decide.
    void (*drop)(std::size_t count, std::uint64_t key, float share, const float* x, float* out);
    double (*dot)(std::size_t count, const float* a, const float* b);
    void (*add)(std::size_t count, const float* x, float* out);
    void (*adam)(std::size_t count, const AdamStep& step, const float* gradient, float* weight,
                 float* first, float* second);
};

/// The best set that this processor runs.
const Kernels& kernels() noexcept;

const Kernels& baseline_kernels() noexcept;
#if defined(__x86_64__)
const Kernels& avx2_kernels() noexcept;
const Kernels& avx512_kernels() noexcept;
#endif

}  // namespace molly::train
