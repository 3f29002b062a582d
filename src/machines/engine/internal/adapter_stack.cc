#include "engine/internal/adapter_stack.h"

#include <algorithm>

#include <fmt/format.h>
#include <ggml-backend.h>
#include <ggml.h>

namespace molly::engine {
namespace {

constexpr std::uint32_t rank_step = 16;  // stacks grow by so much, not with every other adapter

/// Adapters of one sequence and their strengths; equal ones have equal factors.
std::string name_of(const AdapterMix& mix) {
    std::string name;
    for (const AdapterStep& step : mix)
        name += fmt::format("{}*{} ", step.hash, step.scale);
    return name;
}

/// The largest sum of ranks that a layer sees: adapters of one sequence stand side by side.
std::uint32_t rank_of(const AdapterMix& mix, std::size_t layers) {
    std::uint32_t most = 0;
    for (std::uint32_t layer = 0; layer < layers; ++layer) {
        std::uint32_t sum = 0;
        for (const AdapterStep& step : mix)
            if (const LoraPair* pair = step.adapter->pair(layer)) sum += pair->rank;
        most = std::max(most, sum);
    }
    return (most + rank_step - 1) / rank_step * rank_step;
}

ggml_backend_dev_t device_of(const ggml_tensor& weight) {
    if (weight.buffer == nullptr) return nullptr;
    return ggml_backend_buft_get_device(ggml_backend_buffer_get_type(weight.buffer));
}

}  // namespace

void AdapterStack::note(const ggml_tensor& weight) {
    ggml_backend_dev_t device = device_of(weight);
    if (device == nullptr) device = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    wanted_ = wanted_ || ggml_backend_dev_type(device) != GGML_BACKEND_DEVICE_TYPE_CPU;
    layers_.emplace_back().memory = ggml_backend_dev_buffer_type(device);
}

bool AdapterStack::set_step(const std::vector<AdapterMix>& by_sequence,
                            std::span<const LinearLayer> layers) {
    ++steps_;
    std::map<std::string, const AdapterMix*> wanted;
    std::uint32_t rank = rank_;
    for (const AdapterMix& mix : by_sequence) {
        if (mix.empty()) continue;
        wanted.emplace(name_of(mix), &mix);
        rank = std::max(rank, rank_of(mix, layers.size()));
    }
    if (!wanted.empty() && (rank > rank_ || wanted.size() + 1 > places_.size()))
        grow(rank, std::max(wanted.size(), by_sequence.size()) + 1);
    // First those that are there, so that nobody takes their place.
    for (Place& place : places_)
        if (wanted.contains(place.mix)) place.used = steps_;
    for (const auto& [name, mix] : wanted) {
        const std::size_t at = place_for(name);
        if (places_[at].mix != name && !write(at, *mix, layers)) {
            places_[at] = {};  // half written
            return false;
        }
        places_[at] = {.mix = name, .used = steps_};
    }
    by_sequence_.assign(by_sequence.size(), 0);
    for (std::size_t sequence = 0; sequence < by_sequence.size(); ++sequence)
        if (!by_sequence[sequence].empty())
            by_sequence_[sequence] =
                static_cast<std::int32_t>(place_for(name_of(by_sequence[sequence])));
    return true;
}

/// The place that holds a mix, else the one used longest ago.
std::size_t AdapterStack::place_for(const std::string& mix) const {
    std::size_t oldest = 1;
    for (std::size_t at = 1; at < places_.size(); ++at) {
        if (places_[at].mix == mix) return at;
        if (places_[at].used < places_[oldest].used) oldest = at;
    }
    return oldest;
}

void AdapterStack::grow(std::uint32_t rank, std::size_t places) {
    ++generation_;
    rank_ = rank;
    places_.assign(std::max(places, places_.size()), {});
    for (Layer& layer : layers_) {
        layer.buffer.reset();
        layer.context.reset();
        layer.a = layer.b = nullptr;
    }
}

/// Lays a layer's factors out, all zero, where no adapter changed it before.
bool AdapterStack::prepare(Layer& layer, const LinearLayer& shape) const {
    if (layer.buffer) return true;
    const auto count = static_cast<std::int64_t>(places_.size());
    layer.context.reset(ggml_init(
        {.mem_size = 2 * ggml_tensor_overhead(), .mem_buffer = nullptr, .no_alloc = true}));
    if (!layer.context) return false;
    layer.a = ggml_new_tensor_3d(layer.context.get(), GGML_TYPE_F16,
                                 static_cast<std::int64_t>(shape.in), rank_, count);
    layer.b = ggml_new_tensor_3d(layer.context.get(), GGML_TYPE_F16, rank_,
                                 static_cast<std::int64_t>(shape.out), count);
    layer.buffer.reset(ggml_backend_alloc_ctx_tensors_from_buft(layer.context.get(), layer.memory));
    if (!layer.buffer) return false;
    // So that the product is computed where the factors lie.
    ggml_backend_buffer_set_usage(layer.buffer.get(), GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    ggml_backend_buffer_clear(layer.buffer.get(), 0);
    return true;
}

bool AdapterStack::write(std::size_t place, const AdapterMix& mix,
                         std::span<const LinearLayer> layers) {
    for (std::uint32_t i = 0; i < layers.size(); ++i) {
        Layer& layer = layers_[i];
        const bool changed = std::ranges::any_of(
            mix, [&](const AdapterStep& step) { return step.adapter->pair(i) != nullptr; });
        if (!changed && !layer.buffer) continue;
        if (!prepare(layer, layers[i])) return false;
        write_layer(layer, i, place, mix, layers[i]);
    }
    return true;
}

void AdapterStack::write_layer(const Layer& layer, std::uint32_t number, std::size_t place,
                               const AdapterMix& mix, const LinearLayer& shape) const {
    std::vector<ggml_fp16_t> a(rank_ * shape.in, 0);
    std::vector<ggml_fp16_t> b(shape.out * rank_, 0);
    std::uint32_t first = 0;
    for (const AdapterStep& step : mix) {
        const LoraPair* pair = step.adapter->pair(number);
        if (pair == nullptr) continue;
        for (std::uint32_t r = 0; r < pair->rank; ++r) {
            for (std::uint32_t k = 0; k < shape.in; ++k)
                a[(first + r) * shape.in + k] = ggml_fp32_to_fp16(lora_a_at(*pair, r, k));
            for (std::uint32_t o = 0; o < shape.out; ++o)
                b[o * rank_ + first + r] =
                    ggml_fp32_to_fp16(lora_b_at(*pair, o, r) * pair->scale * step.scale);
        }
        first += pair->rank;
    }
    ggml_backend_tensor_set(layer.a, a.data(), place * layer.a->nb[2], layer.a->nb[2]);
    ggml_backend_tensor_set(layer.b, b.data(), place * layer.b->nb[2], layer.b->nb[2]);
}

ggml_tensor* AdapterStack::new_choice(ggml_context* context, std::int64_t rows) {
    ggml_tensor* choice = ggml_new_tensor_2d(context, GGML_TYPE_I32, 1, rows);
    ggml_set_input(choice);
    return choice;
}

void AdapterStack::choose(std::span<const std::uint32_t> sequences, ggml_tensor* choice) const {
    if (choice->buffer == nullptr) return;  // no operation reads it
    std::vector<std::int32_t> places(static_cast<std::size_t>(choice->ne[1]), 0);
    for (std::size_t row = 0; row < std::min(places.size(), sequences.size()); ++row)
        if (sequences[row] < by_sequence_.size()) places[row] = by_sequence_[sequences[row]];
    ggml_backend_tensor_set(choice, places.data(), 0, places.size() * sizeof(places[0]));
}

ggml_tensor* AdapterStack::add_delta(ggml_context* context, std::uint32_t layer, ggml_tensor* input,
                                     ggml_tensor* output, ggml_tensor* choice) const {
    const Layer& factors = layers_[layer];
    ggml_tensor* rows = ggml_is_contiguous(input) ? input : ggml_cont(context, input);
    rows = ggml_reshape_3d(context, rows, rows->ne[0], 1, rows->ne[1]);
    ggml_tensor* delta = ggml_mul_mat_id(context, factors.a, rows, choice);
    delta = ggml_mul_mat_id(context, factors.b, delta, choice);
    return ggml_add(context, output, ggml_reshape_2d(context, delta, output->ne[0], output->ne[1]));
}

}  // namespace molly::engine
