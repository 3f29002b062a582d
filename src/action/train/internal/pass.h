#pragma once
// Forward and backward of one decoder over a few packed sequences, on one lane. The heavy work is
// Matmul; what is cheap to make again (norms, SwiGLU, attention scores) is not kept, and logits
// exist only for a chunk of tokens at a time.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "train/internal/attention.h"
#include "train/internal/matmul.h"
#include "train/internal/weights.h"
#include "train/shape.h"

namespace molly::train {

/// `sequences` rows of `tokens` each. Everything is [sequences * tokens].
struct Batch {
    std::size_t sequences = 0;
    std::size_t tokens = 0;
    std::span<const std::int32_t> input;
    std::span<const std::int32_t> target;  ///< the token that follows
    std::span<const float> weight;         ///< of each target in the loss; 0: it does not count
    std::span<const std::uint32_t> first;  ///< in its sequence, the earliest token it may look at

    std::size_t size() const noexcept { return sequences * tokens; }
};

/// Some sequences of a batch, from number `sequence` on, with weights of their own.
Batch part_of(const Batch& batch, std::span<const float> weight, std::size_t sequence,
              std::size_t count);

class Pass {
public:
    /// Workspace for batches of up to `sequences` sequences of the shape's context.
    Pass(const Shape& shape, const Layout& layout, std::size_t sequences,
         Precision precision = Precision::f32);

    /// The sum of weight * loss; adds its gradient to `gradients` (layout's size).
    double train(std::span<const float> weights, const Batch& batch, float z_loss,
                 std::span<float> gradients);
    /// The same sum, no gradient.
    double loss(std::span<const float> weights, const Batch& batch);
    /// Logits of every token: [tokens, vocabulary].
    std::vector<float> logits(std::span<const float> weights, const Batch& batch);

private:
    /// What backward needs of one layer.
    struct LayerState {
        std::vector<float> in, query, key, value, mixed, middle, gate, up;  // activations
        std::vector<float> log_sum, in_inverse, middle_inverse;
    };

    void forward(const Batch& batch);
    void forward_layer(const LayerLayout& at, LayerState& state, const Batch& batch);
    double head(const Batch& batch, float z_loss, float* gradients);
    void backward(const Batch& batch, float* gradients);
    void backward_feed(const LayerLayout& at, LayerState& state, float* gradients);
    void backward_attention(const LayerLayout& at, LayerState& state, const Batch& batch,
                            float* gradients);
    /// out = x * weight^T for a weight of [to, from].
    void linear(const float* x, std::size_t from, std::size_t to, std::size_t weight, float* out,
                bool accumulate = false);
    /// dx (+)= dout * weight, and the weight's gradient += dout^T * x.
    void linear_backward(const float* x, const float* dout, std::size_t from, std::size_t to,
                         std::size_t weight, float* dx, bool accumulate, float* gradients);

    Shape shape_;
    const Layout* layout_;
    const float* weights_ = nullptr;
    std::size_t rows_ = 0;  ///< tokens of the batch at hand
    Matmul multiply_;
    Attention attention_;
    std::vector<LayerState> states_;
    std::vector<float> cosine_, sine_;  // shape: [context, head_width / 2]
    std::vector<float> stream_, normed_, wide_, out_inverse_;
    std::vector<float> dstream_, dnormed_, dwide_gate_, dwide_up_, dquery_, dkey_, dvalue_;
    std::vector<float> logits_;
};

}  // namespace molly::train
