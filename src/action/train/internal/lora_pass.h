#pragma once
// Forward and backward of a frozen decoder with a LoRA adapter over packed sequences, all lanes
// together. Only the adapter has a gradient; what is cheap to make again is not kept, and logits
// exist for the tokens that count in the loss, a chunk at a time.
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "train/internal/attention.h"
#include "train/internal/frozen_model.h"
#include "train/internal/lora_layout.h"
#include "train/internal/pass.h"
#include "train/internal/projections.h"

namespace molly::train {

/// One evaluation of the model.
struct LoraView {
    std::span<const float> adapter;  ///< of the layout's size; empty: the bare base
    std::uint64_t drop_key = 0;      ///< 0: no dropout
};

class LoraPass {
public:
    /// Workspace for batches of up to `sequences` sequences of `context` tokens.
    LoraPass(const FrozenModel& model, const LoraLayout& layout, const AdapterScale& scale,
             Lanes& lanes, Precision precision, std::size_t sequences, std::size_t context);
    LoraPass(const LoraPass&) = delete;
    LoraPass& operator=(const LoraPass&) = delete;
    LoraPass(LoraPass&&) = delete;
    LoraPass& operator=(LoraPass&&) = delete;
    ~LoraPass() = default;

    /// Runs the batch up to the last norm. The views must stay as they are until backward.
    void forward(const LoraView& view, const Batch& batch);
    /// -log p(target) of each token whose weight is not 0, and 0 of the others: [tokens].
    std::vector<float> losses();
    /// The sum of weight * -log p(target), with other weights than the batch's (negative ones
    /// too); adds the gradient to `gradient`, of the layout's size.
    double backward(std::span<const float> weight, std::span<float> gradient);
    /// Logits of every token: [tokens, vocabulary].
    std::vector<float> logits();

private:
    struct LayerState {
        std::vector<float> in, query, key, value, mixed, middle, gate, up;
        std::vector<float> query_raw, key_raw, attention_out, feed_out;  // where norms follow
        std::vector<float> log_sum, in_inverse, middle_inverse;
        std::vector<float> query_inverse, key_inverse, attention_inverse, feed_inverse;
        std::array<std::vector<float>, group_count> low;
    };
    struct Angles {
        std::vector<float> cosine, sine;  // shape: [context, head_width / 2]
    };
    struct Group;

    void resize_states(std::size_t rows);
    void resize_buffers(std::size_t rows);
    void make_angles();
    Group group(std::size_t layer, std::size_t number, float* gradient);
    void rotate(std::size_t layer, float* x, std::size_t heads, float direction);
    void norm(std::span<const float> weight, const float* x, float* out, float* inverse,
              std::size_t width, std::size_t heads = 1);
    void norm_backward(std::span<const float> weight, const float* x, const float* inverse,
                       const float* dout, float* dx, std::size_t width, std::size_t heads = 1);
    void attend(std::size_t layer, bool back);
    void activate(const LayerState& state);
    void forward_attention(std::size_t layer);
    void forward_feed(std::size_t layer);
    void backward_feed(std::size_t layer, float* gradient);
    void backward_attention(std::size_t layer, float* gradient);
    void add_branch(std::span<const float> post_norm, std::vector<float>& kept,
                    std::vector<float>& inverse, Group& group, const float* x, float* low);
    const float* branch_gradient(std::span<const float> post_norm, const std::vector<float>& kept,
                                 const std::vector<float>& inverse);
    template <class Work>
    void each_chunk(std::span<const float> weight, const Work& work);

    const FrozenModel& model_;
    const LoraLayout& layout_;
    const FrozenShape& shape_;
    Lanes& lanes_;
    std::size_t context_;
    AttentionShape attention_shape_;
    Projections projections_;
    std::vector<Attention> attention_;  // one per lane
    std::vector<LayerState> states_;
    std::vector<Angles> angles_;  // without and with a window
    std::vector<std::uint32_t> window_first_;
    LoraView view_;
    Batch batch_;
    std::size_t rows_ = 0;
    std::vector<float> stream_, normed_, wide_, branch_, out_inverse_;
    std::vector<float> dstream_, dnormed_, dbranch_, dwide_, dgate_, dup_;
    std::vector<float> dquery_, dkey_, dvalue_, dmixed_, dkey_raw_;
    std::size_t chunk_ = 0;             ///< tokens whose logits exist at once
    std::vector<std::size_t> counted_;  // rows of the head's chunk
    std::vector<float> head_in_, dhead_in_, logits_;
};

}  // namespace molly::train
