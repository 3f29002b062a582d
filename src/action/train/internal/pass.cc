#include "train/internal/pass.h"

#include <algorithm>
#include <cmath>

#include "base/assert.h"
#include "train/internal/kernels.h"

namespace molly::train {
namespace {

constexpr std::size_t chunk_tokens = 128;  // logits of this many tokens exist at once

/// Not a power of two: dlogits is read by columns, whose elements would share cache sets.
std::size_t logits_stride(const Shape& shape) {
    return shape.vocabulary + 16;
}

AttentionShape attention_shape(const Shape& shape) {
    AttentionShape out;
    out.heads = shape.heads;
    out.key_heads = shape.key_heads;
    out.head_width = shape.head_width();
    out.context = shape.context;
    out.scale = 1.0F / std::sqrt(static_cast<float>(shape.head_width()));
    return out;
}

}  // namespace

Batch part_of(const Batch& batch, std::span<const float> weight, std::size_t sequence,
              std::size_t count) {
    const std::size_t from = sequence * batch.tokens;
    const std::size_t size = count * batch.tokens;
    Batch out;
    out.sequences = count;
    out.tokens = batch.tokens;
    out.input = batch.input.subspan(from, size);
    out.target = batch.target.subspan(from, size);
    out.weight = weight.subspan(from, size);
    out.first = batch.first.subspan(from, size);
    return out;
}

Pass::Pass(const Shape& shape, const Layout& layout, std::size_t sequences, Precision precision)
    : shape_(shape),
      layout_(&layout),
      multiply_(precision),
      attention_(attention_shape(shape), multiply_),
      states_(shape.layers) {
    const std::size_t rows = sequences * shape.context;
    const std::size_t narrow = rows * shape.embed;
    const std::size_t keys = rows * shape.key_width();
    const std::size_t wide = rows * shape.feed_forward;
    for (LayerState& state : states_) {
        for (auto* array : {&state.in, &state.query, &state.mixed, &state.middle})
            array->resize(narrow);
        for (auto* array : {&state.key, &state.value})
            array->resize(keys);
        for (auto* array : {&state.gate, &state.up})
            array->resize(wide);
        state.log_sum.resize(rows * shape.heads);
        state.in_inverse.resize(rows);
        state.middle_inverse.resize(rows);
    }
    for (auto* array : {&stream_, &normed_, &dstream_, &dnormed_, &dquery_})
        array->resize(narrow);
    for (auto* array : {&dkey_, &dvalue_})
        array->resize(keys);
    for (auto* array : {&wide_, &dwide_gate_, &dwide_up_})
        array->resize(wide);
    out_inverse_.resize(rows);
    logits_.resize(std::min(chunk_tokens, rows) * logits_stride(shape));
    const std::size_t pairs = shape.head_width() / 2;
    cosine_.resize(shape.context * pairs);
    sine_.resize(shape.context * pairs);
    for (std::size_t r = 0; r < shape.context; ++r) {
        for (std::size_t i = 0; i < pairs; ++i) {
            const double angle = static_cast<double>(r) *
                                 std::pow(static_cast<double>(shape.rope_base),
                                          -static_cast<double>(i) / static_cast<double>(pairs));
            cosine_[r * pairs + i] = static_cast<float>(std::cos(angle));
            sine_[r * pairs + i] = static_cast<float>(std::sin(angle));
        }
    }
}

double Pass::train(std::span<const float> weights, const Batch& batch, float z_loss,
                   std::span<float> gradients) {
    MOLLY_ASSERT(weights.size() == layout_->size && gradients.size() == layout_->size);
    weights_ = weights.data();
    forward(batch);
    const double loss = head(batch, z_loss, gradients.data());
    backward(batch, gradients.data());
    return loss;
}

double Pass::loss(std::span<const float> weights, const Batch& batch) {
    weights_ = weights.data();
    forward(batch);
    return head(batch, 0, nullptr);
}

std::vector<float> Pass::logits(std::span<const float> weights, const Batch& batch) {
    weights_ = weights.data();
    forward(batch);
    std::vector<float> out(rows_ * shape_.vocabulary);
    kernels().norm_forward(rows_, shape_.embed, shape_.norm_epsilon, stream_.data(),
                           weights_ + layout_->output_norm, normed_.data(), out_inverse_.data());
    linear(normed_.data(), shape_.embed, shape_.vocabulary, layout_->head, out.data());
    return out;
}

void Pass::linear(const float* x, std::size_t from, std::size_t to, std::size_t weight, float* out,
                  bool accumulate) {
    multiply_(rows_, to, from, {x, from}, {weights_ + weight, from, true}, {out, to}, accumulate);
}

void Pass::linear_backward(const float* x, const float* dout, std::size_t from, std::size_t to,
                           std::size_t weight, float* dx, bool accumulate, float* gradients) {
    multiply_(rows_, from, to, {dout, to}, {weights_ + weight, from}, {dx, from}, accumulate);
    multiply_(to, from, rows_, {dout, to, true}, {x, from}, {gradients + weight, from}, true);
}

void Pass::forward(const Batch& batch) {
    rows_ = batch.size();
    MOLLY_ASSERT(batch.tokens <= shape_.context && rows_ <= out_inverse_.size());
    const std::size_t width = shape_.embed;
    for (std::size_t r = 0; r < rows_; ++r) {
        std::copy_n(
            weights_ + layout_->embedding + static_cast<std::size_t>(batch.input[r]) * width, width,
            stream_.data() + r * width);
    }
    for (std::size_t i = 0; i < states_.size(); ++i)
        forward_layer(layout_->layers[i], states_[i], batch);
}

void Pass::forward_layer(const LayerLayout& at, LayerState& state, const Batch& batch) {
    const std::size_t width = shape_.embed;
    const std::size_t keys = shape_.key_width();
    const std::size_t wide = shape_.feed_forward;
    const std::size_t head_width = shape_.head_width();
    std::copy_n(stream_.data(), rows_ * width, state.in.data());
    kernels().norm_forward(rows_, width, shape_.norm_epsilon, stream_.data(),
                           weights_ + at.attention_norm, normed_.data(), state.in_inverse.data());
    linear(normed_.data(), width, width, at.query, state.query.data());
    linear(normed_.data(), width, keys, at.key, state.key.data());
    linear(normed_.data(), width, keys, at.value, state.value.data());
    for (std::size_t s = 0; s < batch.sequences; ++s) {
        const std::size_t row = s * batch.tokens;
        float* query = state.query.data() + row * width;
        float* key = state.key.data() + row * keys;
        kernels().rotate(batch.tokens, shape_.heads, head_width, 1, cosine_.data(), sine_.data(),
                         query);
        kernels().rotate(batch.tokens, shape_.key_heads, head_width, 1, cosine_.data(),
                         sine_.data(), key);
        attention_.forward(
            batch.tokens, batch.first.data() + row,
            {query, key, state.value.data() + row * keys, state.mixed.data() + row * width,
             state.log_sum.data() + row * shape_.heads});
    }
    linear(state.mixed.data(), width, width, at.output, stream_.data(), true);
    std::copy_n(stream_.data(), rows_ * width, state.middle.data());
    kernels().norm_forward(rows_, width, shape_.norm_epsilon, stream_.data(),
                           weights_ + at.feed_norm, normed_.data(), state.middle_inverse.data());
    linear(normed_.data(), width, wide, at.gate, state.gate.data());
    linear(normed_.data(), width, wide, at.up, state.up.data());
    kernels().swiglu_forward(rows_ * wide, state.gate.data(), state.up.data(), wide_.data());
    linear(wide_.data(), wide, width, at.down, stream_.data(), true);
}

double Pass::head(const Batch& batch, float z_loss, float* gradients) {
    const std::size_t width = shape_.embed;
    const std::size_t words = shape_.vocabulary;
    const std::size_t stride = logits_stride(shape_);
    const float* table = weights_ + layout_->head;
    kernels().norm_forward(rows_, width, shape_.norm_epsilon, stream_.data(),
                           weights_ + layout_->output_norm, normed_.data(), out_inverse_.data());
    double loss = 0;
    for (std::size_t start = 0; start < rows_; start += chunk_tokens) {
        const std::size_t rows = std::min(chunk_tokens, rows_ - start);
        const float* x = normed_.data() + start * width;
        multiply_(rows, words, width, {x, width}, {table, width, true}, {logits_.data(), stride});
        loss += kernels().cross_entropy(rows, words, stride, z_loss, batch.target.data() + start,
                                        batch.weight.data() + start, logits_.data());
        if (gradients == nullptr) continue;
        multiply_(rows, width, words, {logits_.data(), stride}, {table, width},
                  {dnormed_.data() + start * width, width});
        multiply_(words, width, rows, {logits_.data(), stride, true}, {x, width},
                  {gradients + layout_->head, width}, true);
    }
    return loss;
}

void Pass::backward(const Batch& batch, float* gradients) {
    const std::size_t width = shape_.embed;
    std::fill_n(dstream_.data(), rows_ * width, 0.0F);
    kernels().norm_backward(rows_, width, stream_.data(), weights_ + layout_->output_norm,
                            out_inverse_.data(), dnormed_.data(), dstream_.data(),
                            gradients + layout_->output_norm);
    for (std::size_t i = states_.size(); i-- > 0;) {
        backward_feed(layout_->layers[i], states_[i], gradients);
        backward_attention(layout_->layers[i], states_[i], batch, gradients);
    }
    for (std::size_t r = 0; r < rows_; ++r) {
        kernels().add(
            width, dstream_.data() + r * width,
            gradients + layout_->embedding + static_cast<std::size_t>(batch.input[r]) * width);
    }
}

void Pass::backward_feed(const LayerLayout& at, LayerState& state, float* gradients) {
    const std::size_t width = shape_.embed;
    const std::size_t wide = shape_.feed_forward;
    // d(wide) first, because swiglu_backward turns it into the activation that `down` read.
    multiply_(rows_, wide, width, {dstream_.data(), width}, {weights_ + at.down, wide},
              {wide_.data(), wide});
    kernels().swiglu_backward(rows_ * wide, state.gate.data(), state.up.data(), wide_.data(),
                              dwide_gate_.data(), dwide_up_.data());
    multiply_(width, wide, rows_, {dstream_.data(), width, true}, {wide_.data(), wide},
              {gradients + at.down, wide}, true);
    kernels().norm_forward(rows_, width, shape_.norm_epsilon, state.middle.data(),
                           weights_ + at.feed_norm, normed_.data(), state.middle_inverse.data());
    linear_backward(normed_.data(), dwide_gate_.data(), width, wide, at.gate, dnormed_.data(),
                    false, gradients);
    linear_backward(normed_.data(), dwide_up_.data(), width, wide, at.up, dnormed_.data(), true,
                    gradients);
    kernels().norm_backward(rows_, width, state.middle.data(), weights_ + at.feed_norm,
                            state.middle_inverse.data(), dnormed_.data(), dstream_.data(),
                            gradients + at.feed_norm);
}

void Pass::backward_attention(const LayerLayout& at, LayerState& state, const Batch& batch,
                              float* gradients) {
    const std::size_t width = shape_.embed;
    const std::size_t keys = shape_.key_width();
    const std::size_t head_width = shape_.head_width();
    linear_backward(state.mixed.data(), dstream_.data(), width, width, at.output, dnormed_.data(),
                    false, gradients);
    for (std::size_t s = 0; s < batch.sequences; ++s) {
        const std::size_t row = s * batch.tokens;
        float* dquery = dquery_.data() + row * width;
        float* dkey = dkey_.data() + row * keys;
        attention_.backward(
            batch.tokens, batch.first.data() + row,
            {state.query.data() + row * width, state.key.data() + row * keys,
             state.value.data() + row * keys, state.mixed.data() + row * width,
             state.log_sum.data() + row * shape_.heads},
            {dnormed_.data() + row * width, dquery, dkey, dvalue_.data() + row * keys});
        kernels().rotate(batch.tokens, shape_.heads, head_width, -1, cosine_.data(), sine_.data(),
                         dquery);
        kernels().rotate(batch.tokens, shape_.key_heads, head_width, -1, cosine_.data(),
                         sine_.data(), dkey);
    }
    kernels().norm_forward(rows_, width, shape_.norm_epsilon, state.in.data(),
                           weights_ + at.attention_norm, normed_.data(), state.in_inverse.data());
    linear_backward(normed_.data(), dquery_.data(), width, width, at.query, dnormed_.data(), false,
                    gradients);
    linear_backward(normed_.data(), dkey_.data(), width, keys, at.key, dnormed_.data(), true,
                    gradients);
    linear_backward(normed_.data(), dvalue_.data(), width, keys, at.value, dnormed_.data(), true,
                    gradients);
    kernels().norm_backward(rows_, width, state.in.data(), weights_ + at.attention_norm,
                            state.in_inverse.data(), dnormed_.data(), dstream_.data(),
                            gradients + at.attention_norm);
}

}  // namespace molly::train
