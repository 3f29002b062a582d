#include "train/internal/lora_pass.h"

#include <algorithm>
#include <cmath>

#include "base/assert.h"
#include "train/internal/kernels.h"
#include "train/internal/random.h"

namespace molly::train {
namespace {

constexpr std::size_t logits_max = 48U << 20U;  // floats that exist at once

std::size_t logits_stride(const FrozenShape& shape) {
    return shape.vocabulary + 16;  // not a power of two: columns would share cache sets
}

AttentionShape attention_of(const FrozenShape& shape, std::size_t context) {
    AttentionShape out;
    out.heads = shape.heads;
    out.key_heads = shape.key_heads;
    out.head_width = shape.head_width;
    out.context = context;
    out.scale = shape.attention_scale;
    return out;
}

std::size_t widest_input(const FrozenShape& shape) {
    return std::max(
        {std::size_t{shape.embed}, std::size_t{shape.feed_forward}, shape.query_width()});
}

}  // namespace

/// The linear layers of one group, with their part of the adapter.
struct LoraPass::Group {
    std::array<Linear, 3> layers;
    std::size_t count = 0;
    LinearGroup linear;

    const LinearGroup& get() {
        linear.layers = {layers.data(), count};
        return linear;
    }
};

LoraPass::LoraPass(const FrozenModel& model, const LoraLayout& layout, const AdapterScale& scale,
                   Lanes& lanes, Precision precision, std::size_t sequences, std::size_t context)
    : model_(model),
      layout_(layout),
      shape_(model.shape()),
      lanes_(lanes),
      context_(context),
      attention_shape_(attention_of(model.shape(), context)),
      projections_(lanes, precision, sequences * context, widest_input(model.shape()), scale, 3),
      states_(model.layers().size()),
      angles_(2) {
    for (std::size_t lane = 0; lane < lanes.count(); ++lane)
        attention_.emplace_back(attention_shape_, projections_.multiply(lane));
    resize_states(sequences * context);
    resize_buffers(sequences * context);
    make_angles();
}

void LoraPass::resize_states(std::size_t rows) {
    const std::size_t narrow = rows * shape_.embed;
    const std::size_t query = rows * shape_.query_width();
    const std::size_t keys = rows * shape_.key_width();
    const std::size_t wide = rows * shape_.feed_forward;
    for (std::size_t i = 0; i < states_.size(); ++i) {
        const FrozenLayer& frozen = model_.layers()[i];
        LayerState& state = states_[i];
        for (auto* array : {&state.in, &state.middle})
            array->resize(narrow);
        for (auto* array : {&state.query, &state.mixed})
            array->resize(query);
        for (auto* array : {&state.key, &state.value})
            array->resize(keys);
        for (auto* array : {&state.gate, &state.up})
            array->resize(wide);
        for (auto* array : {&state.in_inverse, &state.middle_inverse})
            array->resize(rows);
        state.log_sum.resize(rows * shape_.heads);
        if (!frozen.query_norm.empty()) {
            state.query_raw.resize(query);
            state.query_inverse.resize(rows * shape_.heads);
        }
        if (!frozen.key_norm.empty()) {
            state.key_raw.resize(keys);
            state.key_inverse.resize(rows * shape_.key_heads);
        }
        if (!frozen.attention_post_norm.empty()) {
            state.attention_out.resize(narrow);
            state.attention_inverse.resize(rows);
        }
        if (!frozen.feed_post_norm.empty()) {
            state.feed_out.resize(narrow);
            state.feed_inverse.resize(rows);
        }
        for (std::size_t g = 0; g < group_count; ++g)
            state.low[g].resize(rows * layout_.layers[i].groups[g].adapted.size() * layout_.rank);
    }
}

void LoraPass::resize_buffers(std::size_t rows) {
    const std::size_t narrow = rows * shape_.embed;
    const std::size_t query = rows * shape_.query_width();
    const std::size_t keys = rows * shape_.key_width();
    const std::size_t wide = rows * shape_.feed_forward;
    for (auto* array : {&stream_, &normed_, &branch_, &dstream_, &dnormed_, &dbranch_})
        array->resize(narrow);
    for (auto* array : {&dquery_, &dmixed_})
        array->resize(query);
    for (auto* array : {&dkey_, &dvalue_, &dkey_raw_})
        array->resize(keys);
    for (auto* array : {&wide_, &dwide_, &dgate_, &dup_})
        array->resize(wide);
    out_inverse_.resize(rows);
    window_first_.resize(rows);
    chunk_ = std::min(rows, std::max<std::size_t>(16, logits_max / logits_stride(shape_)));
    head_in_.resize(chunk_ * shape_.embed);
    dhead_in_.resize(chunk_ * shape_.embed);
    logits_.resize(chunk_ * logits_stride(shape_));
}

void LoraPass::make_angles() {
    for (const FrozenLayer& frozen : model_.layers()) {
        Angles& angles = angles_[frozen.window > 0 ? 1 : 0];
        if (!angles.cosine.empty()) continue;
        for (std::size_t t = 0; t < context_; ++t) {
            for (const float frequency : frozen.frequency) {
                const double angle = static_cast<double>(t) * static_cast<double>(frequency);
                angles.cosine.push_back(static_cast<float>(std::cos(angle)));
                angles.sine.push_back(static_cast<float>(std::sin(angle)));
            }
        }
    }
}

LoraPass::Group LoraPass::group(std::size_t layer, std::size_t number, float* gradient) {
    const FrozenLayer& frozen = model_.layers()[layer];
    const LoraGroup& at = layout_.layers[layer].groups[number];
    const float* adapter = view_.adapter.data();
    const bool adapted = !view_.adapter.empty() && !at.adapted.empty();
    Group out;
    for (const Module module : at.members) {
        Linear& one = out.layers[out.count++];
        one.weight = &frozen[module];
        one.y_stride = one.weight->rows;
        const auto& bias = frozen.bias[static_cast<std::size_t>(module)];
        if (!bias.empty()) one.bias = bias.data();
        const auto found = std::find(at.adapted.begin(), at.adapted.end(), module);
        if (!adapted || found == at.adapted.end()) continue;
        const std::size_t b = at.b[static_cast<std::size_t>(found - at.adapted.begin())];
        one.b = adapter + b;
        if (gradient != nullptr) one.b_gradient = gradient + b;
    }
    if (!adapted) return out;
    out.linear.adapted = at.adapted.size();
    out.linear.a = adapter + at.a;
    if (gradient != nullptr) out.linear.a_gradient = gradient + at.a;
    if (view_.drop_key != 0)
        out.linear.drop_key = Random::mix(view_.drop_key + layer * group_count + number) | 1U;
    return out;
}

void LoraPass::rotate(std::size_t layer, float* x, std::size_t heads, float direction) {
    const Angles& angles = angles_[model_.layers()[layer].window > 0 ? 1 : 0];
    const std::size_t pairs = shape_.head_width / 2;
    const std::size_t stride = heads * shape_.head_width;
    const auto turn = shape_.rotate_halves ? kernels().rotate_halves : kernels().rotate;
    lanes_.split(rows_, [&](std::size_t /*lane*/, std::size_t from, std::size_t to) {
        for (std::size_t r = from; r < to; ++r) {
            const std::size_t at = r % batch_.tokens * pairs;
            turn(1, heads, shape_.head_width, direction, angles.cosine.data() + at,
                 angles.sine.data() + at, x + r * stride);
        }
    });
}

void LoraPass::norm(std::span<const float> weight, const float* x, float* out, float* inverse,
                    std::size_t width, std::size_t heads) {
    lanes_.split(rows_ * heads, [&](std::size_t /*lane*/, std::size_t from, std::size_t to) {
        kernels().norm_forward(to - from, width, shape_.norm_epsilon, x + from * width,
                               weight.data(), out + from * width, inverse + from);
    });
}

void LoraPass::norm_backward(std::span<const float> weight, const float* x, const float* inverse,
                             const float* dout, float* dx, std::size_t width, std::size_t heads) {
    lanes_.split(rows_ * heads, [&](std::size_t /*lane*/, std::size_t from, std::size_t to) {
        kernels().norm_backward(to - from, width, x + from * width, weight.data(), inverse + from,
                                dout + from * width, dx + from * width, nullptr);
    });
}

void LoraPass::attend(std::size_t layer, bool back) {
    LayerState& state = states_[layer];
    const std::uint32_t* first = batch_.first.data();
    if (const std::uint32_t window = model_.layers()[layer].window; window > 0) {
        for (std::size_t r = 0; r < rows_; ++r) {
            const auto t = static_cast<std::uint32_t>(r % batch_.tokens);
            window_first_[r] = std::max(first[r], t + 1 > window ? t + 1 - window : 0);
        }
        first = window_first_.data();
    }
    const std::size_t heads = shape_.key_heads;
    const auto work = [&](std::size_t lane, std::size_t from, std::size_t to) {
        for (std::size_t item = from; item < to; ++item) {
            const std::size_t row = item / heads * batch_.tokens;
            const std::size_t query = row * shape_.query_width();
            const std::size_t key = row * shape_.key_width();
            const AttentionArrays arrays = {state.query.data() + query, state.key.data() + key,
                                            state.value.data() + key, state.mixed.data() + query,
                                            state.log_sum.data() + row * shape_.heads};
            if (!back) {
                attention_[lane].forward(batch_.tokens, first + row, arrays, item % heads);
                continue;
            }
            attention_[lane].backward(batch_.tokens, first + row, arrays,
                                      {dmixed_.data() + query, dquery_.data() + query,
                                       dkey_.data() + key, dvalue_.data() + key},
                                      item % heads);
        }
    };
    lanes_.split(batch_.sequences * heads, work);
}

void LoraPass::forward(const LoraView& view, const Batch& batch) {
    view_ = view;
    batch_ = batch;
    rows_ = batch.size();
    MOLLY_ASSERT(batch.tokens <= context_ && rows_ <= out_inverse_.size());
    MOLLY_ASSERT(view.adapter.empty() || view.adapter.size() == layout_.size);
    const std::size_t width = shape_.embed;
    lanes_.split(rows_, [&](std::size_t /*lane*/, std::size_t from, std::size_t to) {
        for (std::size_t r = from; r < to; ++r) {
            const auto token = static_cast<std::size_t>(batch_.input[r]);
            float* out = stream_.data() + r * width;
            model_.embedding().read(token, token + 1, out, width);
            for (std::size_t i = 0; i < width; ++i)
                out[i] *= shape_.embed_scale;
        }
    });
    for (std::size_t layer = 0; layer < states_.size(); ++layer) {
        forward_attention(layer);
        forward_feed(layer);
    }
    norm(model_.output_norm(), stream_.data(), normed_.data(), out_inverse_.data(), width);
}

void LoraPass::add_branch(std::span<const float> post_norm, std::vector<float>& kept,
                          std::vector<float>& inverse, Group& group, const float* x, float* low) {
    const bool plain = post_norm.empty();
    group.layers[0].y = plain ? stream_.data() : kept.data();
    projections_.forward(group.get(), rows_, x, low, plain);
    if (plain) return;
    norm(post_norm, kept.data(), branch_.data(), inverse.data(), shape_.embed);
    lanes_.split(rows_ * shape_.embed, [&](std::size_t /*lane*/, std::size_t from, std::size_t to) {
        kernels().add(to - from, branch_.data() + from, stream_.data() + from);
    });
}

void LoraPass::forward_attention(std::size_t layer) {
    const FrozenLayer& frozen = model_.layers()[layer];
    LayerState& state = states_[layer];
    std::copy_n(stream_.data(), rows_ * shape_.embed, state.in.data());
    norm(frozen.attention_norm, state.in.data(), normed_.data(), state.in_inverse.data(),
         shape_.embed);
    Group inputs = group(layer, 0, nullptr);
    const bool query_norm = !frozen.query_norm.empty();
    const bool key_norm = !frozen.key_norm.empty();
    inputs.layers[0].y = query_norm ? state.query_raw.data() : state.query.data();
    inputs.layers[1].y = key_norm ? state.key_raw.data() : state.key.data();
    inputs.layers[2].y = state.value.data();
    projections_.forward(inputs.get(), rows_, normed_.data(), state.low[0].data(), false);
    if (query_norm) {
        norm(frozen.query_norm, state.query_raw.data(), state.query.data(),
             state.query_inverse.data(), shape_.head_width, shape_.heads);
    }
    if (key_norm) {
        norm(frozen.key_norm, state.key_raw.data(), state.key.data(), state.key_inverse.data(),
             shape_.head_width, shape_.key_heads);
    }
    rotate(layer, state.query.data(), shape_.heads, 1);
    rotate(layer, state.key.data(), shape_.key_heads, 1);
    attend(layer, false);
    Group output = group(layer, 1, nullptr);
    add_branch(frozen.attention_post_norm, state.attention_out, state.attention_inverse, output,
               state.mixed.data(), state.low[1].data());
}

void LoraPass::activate(const LayerState& state) {
    const auto forward = shape_.gelu ? kernels().geglu_forward : kernels().swiglu_forward;
    lanes_.split(rows_ * shape_.feed_forward, [&](std::size_t /*lane*/, std::size_t from,
                                                  std::size_t to) {
        forward(to - from, state.gate.data() + from, state.up.data() + from, wide_.data() + from);
    });
}

void LoraPass::forward_feed(std::size_t layer) {
    const FrozenLayer& frozen = model_.layers()[layer];
    LayerState& state = states_[layer];
    std::copy_n(stream_.data(), rows_ * shape_.embed, state.middle.data());
    norm(frozen.feed_norm, state.middle.data(), normed_.data(), state.middle_inverse.data(),
         shape_.embed);
    Group wide = group(layer, 2, nullptr);
    wide.layers[0].y = state.gate.data();
    wide.layers[1].y = state.up.data();
    projections_.forward(wide.get(), rows_, normed_.data(), state.low[2].data(), false);
    activate(state);
    Group down = group(layer, 3, nullptr);
    add_branch(frozen.feed_post_norm, state.feed_out, state.feed_inverse, down, wide_.data(),
               state.low[3].data());
}

template <class Work>
void LoraPass::each_chunk(std::span<const float> weight, const Work& work) {
    const std::size_t width = shape_.embed;
    const std::size_t stride = logits_stride(shape_);
    Linear table;
    table.weight = &model_.head();
    table.y = logits_.data();
    table.dy = logits_.data();
    table.y_stride = stride;
    LinearGroup group;
    group.layers = {&table, 1};
    for (std::size_t next = 0; next < rows_;) {
        counted_.clear();
        for (; next < rows_ && counted_.size() < chunk_; ++next)
            if (weight[next] != 0) counted_.push_back(next);
        if (counted_.empty()) return;
        for (std::size_t i = 0; i < counted_.size(); ++i)
            std::copy_n(normed_.data() + counted_[i] * width, width, head_in_.data() + i * width);
        projections_.forward(group, counted_.size(), head_in_.data(), nullptr, false);
        work(group);
    }
}

std::vector<float> LoraPass::losses() {
    std::vector<float> out(rows_);
    each_chunk(batch_.weight, [&](const LinearGroup& /*head*/) {
        lanes_.split(counted_.size(), [&](std::size_t /*lane*/, std::size_t from, std::size_t to) {
            constexpr float whole = 1;
            for (std::size_t i = from; i < to; ++i) {
                const std::size_t row = counted_[i];
                out[row] = static_cast<float>(kernels().cross_entropy(
                    1, shape_.vocabulary, logits_stride(shape_), 0, batch_.target.data() + row,
                    &whole, logits_.data() + i * logits_stride(shape_)));
            }
        });
    });
    return out;
}

std::vector<float> LoraPass::logits() {
    const std::vector<float> all(rows_, 1.0F);
    std::vector<float> out(rows_ * shape_.vocabulary);
    each_chunk(all, [&](const LinearGroup& /*head*/) {
        for (std::size_t i = 0; i < counted_.size(); ++i)
            std::copy_n(logits_.data() + i * logits_stride(shape_), shape_.vocabulary,
                        out.data() + counted_[i] * shape_.vocabulary);
    });
    return out;
}

double LoraPass::backward(std::span<const float> weight, std::span<float> gradient) {
    MOLLY_ASSERT(weight.size() == rows_ && gradient.size() == layout_.size);
    const std::size_t width = shape_.embed;
    std::vector<double> loss(lanes_.count());
    std::fill_n(dnormed_.data(), rows_ * width, 0.0F);
    each_chunk(weight, [&](const LinearGroup& head) {
        lanes_.split(counted_.size(), [&](std::size_t lane, std::size_t from, std::size_t to) {
            for (std::size_t i = from; i < to; ++i) {
                const std::size_t row = counted_[i];
                loss[lane] += kernels().cross_entropy(
                    1, shape_.vocabulary, logits_stride(shape_), 0, batch_.target.data() + row,
                    weight.data() + row, logits_.data() + i * logits_stride(shape_));
            }
        });
        projections_.backward(head, counted_.size(), head_in_.data(), nullptr, dhead_in_.data());
        for (std::size_t i = 0; i < counted_.size(); ++i)
            std::copy_n(dhead_in_.data() + i * width, width, dnormed_.data() + counted_[i] * width);
    });
    std::fill_n(dstream_.data(), rows_ * width, 0.0F);
    norm_backward(model_.output_norm(), stream_.data(), out_inverse_.data(), dnormed_.data(),
                  dstream_.data(), width);
    for (std::size_t layer = states_.size(); layer-- > 0;) {
        backward_feed(layer, gradient.data());
        backward_attention(layer, gradient.data());
    }
    double sum = 0;
    for (const double one : loss)
        sum += one;
    return sum;
}

const float* LoraPass::branch_gradient(std::span<const float> post_norm,
                                       const std::vector<float>& kept,
                                       const std::vector<float>& inverse) {
    if (post_norm.empty()) return dstream_.data();
    std::fill_n(dbranch_.data(), rows_ * shape_.embed, 0.0F);
    norm_backward(post_norm, kept.data(), inverse.data(), dstream_.data(), dbranch_.data(),
                  shape_.embed);
    return dbranch_.data();
}

void LoraPass::backward_feed(std::size_t layer, float* gradient) {
    const FrozenLayer& frozen = model_.layers()[layer];
    LayerState& state = states_[layer];
    activate(state);
    Group down = group(layer, 3, gradient);
    down.layers[0].dy = branch_gradient(frozen.feed_post_norm, state.feed_out, state.feed_inverse);
    projections_.backward(down.get(), rows_, wide_.data(), state.low[3].data(), dwide_.data());
    const auto backward = shape_.gelu ? kernels().geglu_backward : kernels().swiglu_backward;
    lanes_.split(rows_ * shape_.feed_forward,
                 [&](std::size_t /*lane*/, std::size_t from, std::size_t to) {
                     backward(to - from, state.gate.data() + from, state.up.data() + from,
                              dwide_.data() + from, dgate_.data() + from, dup_.data() + from);
                 });
    norm(frozen.feed_norm, state.middle.data(), normed_.data(), state.middle_inverse.data(),
         shape_.embed);
    Group wide = group(layer, 2, gradient);
    wide.layers[0].dy = dgate_.data();
    wide.layers[1].dy = dup_.data();
    projections_.backward(wide.get(), rows_, normed_.data(), state.low[2].data(), dnormed_.data());
    norm_backward(frozen.feed_norm, state.middle.data(), state.middle_inverse.data(),
                  dnormed_.data(), dstream_.data(), shape_.embed);
}

void LoraPass::backward_attention(std::size_t layer, float* gradient) {
    const FrozenLayer& frozen = model_.layers()[layer];
    LayerState& state = states_[layer];
    Group output = group(layer, 1, gradient);
    output.layers[0].dy =
        branch_gradient(frozen.attention_post_norm, state.attention_out, state.attention_inverse);
    projections_.backward(output.get(), rows_, state.mixed.data(), state.low[1].data(),
                          dmixed_.data());
    attend(layer, true);
    rotate(layer, dquery_.data(), shape_.heads, -1);
    rotate(layer, dkey_.data(), shape_.key_heads, -1);
    Group inputs = group(layer, 0, gradient);
    inputs.layers[0].dy = dquery_.data();
    inputs.layers[1].dy = dkey_.data();
    inputs.layers[2].dy = dvalue_.data();
    if (!frozen.query_norm.empty()) {
        std::fill_n(dmixed_.data(), rows_ * shape_.query_width(), 0.0F);
        norm_backward(frozen.query_norm, state.query_raw.data(), state.query_inverse.data(),
                      dquery_.data(), dmixed_.data(), shape_.head_width, shape_.heads);
        inputs.layers[0].dy = dmixed_.data();
    }
    if (!frozen.key_norm.empty()) {
        std::fill_n(dkey_raw_.data(), rows_ * shape_.key_width(), 0.0F);
        norm_backward(frozen.key_norm, state.key_raw.data(), state.key_inverse.data(), dkey_.data(),
                      dkey_raw_.data(), shape_.head_width, shape_.key_heads);
        inputs.layers[1].dy = dkey_raw_.data();
    }
    norm(frozen.attention_norm, state.in.data(), normed_.data(), state.in_inverse.data(),
         shape_.embed);
    projections_.backward(inputs.get(), rows_, normed_.data(), state.low[0].data(),
                          dnormed_.data());
    norm_backward(frozen.attention_norm, state.in.data(), state.in_inverse.data(), dnormed_.data(),
                  dstream_.data(), shape_.embed);
}

}  // namespace molly::train
