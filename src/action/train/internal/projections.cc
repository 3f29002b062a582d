#include "train/internal/projections.h"

#include <algorithm>

#include "base/assert.h"
#include "train/internal/kernels.h"

namespace molly::train {
namespace {

constexpr std::size_t tile_floats = 512 * 1024;  // of bf16 they fill a second-level cache

std::size_t tile_rows(std::size_t width) {
    return std::clamp<std::size_t>(tile_floats / width / 32 * 32, 32, 1024);
}

/// Rows [from, to) of one lane, in whole vectors.
struct Part {
    std::size_t from;
    std::size_t to;
};

Part part_of(std::size_t rows, std::size_t lane, std::size_t lanes) {
    const auto cut = [&](std::size_t at) {
        return at == lanes ? rows : std::min(rows, rows * at / lanes / 32 * 32);
    };
    return {cut(lane), cut(lane + 1)};
}

std::size_t width_of(const LinearGroup& group) {
    return group.layers.front().weight->columns;
}

}  // namespace

/// Rows of one layer's weight, ready to multiply.
struct Projections::Tile {
    const Linear* layer;
    std::size_t from, to;
    In matrix;         ///< [to - from, in + adapted * rank]
    std::size_t slot;  ///< among the adapted layers
};

Projections::Projections(Lanes& lanes, Precision precision, std::size_t tokens_max,
                         std::size_t width_max, const AdapterScale& adapter,
                         std::size_t adapted_max)
    : lanes_(lanes), precision_(precision), adapter_(adapter), state_(lanes.count()) {
    const std::size_t low = adapted_max * adapter.rank;
    const std::size_t wide = width_max + low;
    extended_.resize(precision == Precision::f32 ? tokens_max * wide : 0);
    half_.resize(precision == Precision::bf16 ? tokens_max * wide : 0);
    dlow_.resize(tokens_max * low);
    for (Lane& lane : state_) {
        lane.multiply = std::make_unique<Matmul>(precision);
        lane.row.resize(wide);
        lane.partial.resize(tokens_max * wide);
    }
}

Projections::~Projections() = default;

const float* Projections::dropped(const LinearGroup& group, std::size_t from, std::size_t to,
                                  const float* x, std::size_t width,
                                  std::vector<float>& buffer) const {
    if (adapter_.drop == 0 || group.drop_key == 0) return x + from * width;
    buffer.resize(std::max(buffer.size(), (to - from) * width));
    for (std::size_t r = from; r < to; ++r)
        kernels().drop(width, group.drop_key + r * 0x9E3779B97F4A7C15ULL, adapter_.drop,
                       x + r * width, buffer.data() + (r - from) * width);
    return buffer.data();
}

void Projections::make_low(const LinearGroup& group, std::size_t tokens, const float* x,
                           float* low) {
    const std::size_t width = width_of(group);
    const std::size_t columns = group.adapted * adapter_.rank;
    if (columns == 0) return;
    lanes_.split(tokens, [&](std::size_t number, std::size_t from, std::size_t to) {
        if (from == to) return;
        Lane& lane = state_[number];
        const float* input = dropped(group, from, to, x, width, lane.dropped);
        (*lane.multiply)(to - from, columns, width, {input, width}, {group.a, width, true},
                         {low + from * columns, columns});
        for (std::size_t i = from * columns; i < to * columns; ++i)
            low[i] *= adapter_.scale;
    });
}

void Projections::extend(const LinearGroup& group, std::size_t tokens, const float* x,
                         const float* low) {
    const std::size_t width = width_of(group);
    const std::size_t columns = group.adapted * adapter_.rank;
    const std::size_t wide = width + columns;
    lanes_.split(tokens, [&](std::size_t /*lane*/, std::size_t from, std::size_t to) {
        for (std::size_t r = from; r < to; ++r) {
            if (precision_ == Precision::bf16) {
                kernels().to_bf16(width, x + r * width, half_.data() + r * wide);
                kernels().to_bf16(columns, low + r * columns, half_.data() + r * wide + width);
            } else {
                std::copy_n(x + r * width, width, extended_.data() + r * wide);
                std::copy_n(low + r * columns, columns, extended_.data() + r * wide + width);
            }
        }
    });
}

In Projections::tile(Lane& lane, const Linear& layer, std::size_t slot, std::size_t adapted,
                     std::size_t from, std::size_t to) {
    const std::size_t width = layer.weight->columns;
    const std::size_t rank = adapter_.rank;
    const std::size_t wide = width + adapted * rank;
    const bool half = precision_ == Precision::bf16;
    auto& floats = lane.tile;
    if (half) {
        lane.half_tile.resize(std::max(lane.half_tile.size(), (to - from) * wide));
    } else {
        floats.resize(std::max(floats.size(), (to - from) * wide));
    }
    for (std::size_t r = from; r < to; ++r) {
        const float* b = layer.b == nullptr ? nullptr : layer.b + r * rank;
        if (half) {
            std::uint16_t* row = lane.half_tile.data() + (r - from) * wide;
            layer.weight->read_rounded(r, row, lane.row.data());
            std::fill(row + width, row + wide, std::uint16_t{0});
            if (b != nullptr) kernels().to_bf16(rank, b, row + width + slot * rank);
        } else {
            float* row = floats.data() + (r - from) * wide;
            layer.weight->read(r, r + 1, row, width);
            std::fill(row + width, row + wide, 0.0F);
            if (b != nullptr) std::copy_n(b, rank, row + width + slot * rank);
        }
    }
    if (half) return {nullptr, wide, false, lane.half_tile.data()};
    return {floats.data(), wide};
}

template <class Work>
void Projections::each_tile(const LinearGroup& group, std::size_t lane, const Work& work) {
    std::size_t slot = 0;
    for (const Linear& layer : group.layers) {
        const auto [first, last] = part_of(layer.weight->rows, lane, lanes_.count());
        const std::size_t step = tile_rows(layer.weight->columns);
        for (std::size_t from = first; from < last; from += step) {
            const std::size_t to = std::min(last, from + step);
            work(Tile{&layer, from, to, tile(state_[lane], layer, slot, group.adapted, from, to),
                      slot});
        }
        if (layer.b != nullptr) ++slot;
    }
}

void Projections::forward(const LinearGroup& group, std::size_t tokens, const float* x, float* low,
                          bool add) {
    const std::size_t wide = width_of(group) + group.adapted * adapter_.rank;
    make_low(group, tokens, x, low);
    extend(group, tokens, x, low);
    const In input = precision_ == Precision::bf16 ? In{nullptr, wide, false, half_.data()}
                                                   : In{extended_.data(), wide};
    lanes_.run([&](std::size_t number) {
        each_tile(group, number, [&](const Tile& now) {
            const Linear& layer = *now.layer;
            float* y = layer.y + now.from;
            const std::size_t count = now.to - now.from;
            if (layer.bias != nullptr && !add) {
                for (std::size_t r = 0; r < tokens; ++r)
                    std::copy_n(layer.bias + now.from, count, y + r * layer.y_stride);
            } else if (layer.bias != nullptr) {
                for (std::size_t r = 0; r < tokens; ++r)
                    kernels().add(count, layer.bias + now.from, y + r * layer.y_stride);
            }
            In weight = now.matrix;
            weight.transposed = true;
            (*state_[number].multiply)(tokens, count, wide, input, weight, {y, layer.y_stride},
                                       add || layer.bias != nullptr);
        });
    });
}

void Projections::backward(const LinearGroup& group, std::size_t tokens, const float* x,
                           const float* low, float* dx) {
    const std::size_t rank = adapter_.rank;
    const std::size_t columns = group.adapted * rank;
    const std::size_t wide = width_of(group) + columns;
    lanes_.run([&](std::size_t number) {
        Lane& lane = state_[number];
        bool begun = false;
        each_tile(group, number, [&](const Tile& now) {
            const Linear& layer = *now.layer;
            const std::size_t count = now.to - now.from;
            const In dy{layer.dy + now.from, layer.y_stride};
            (*lane.multiply)(tokens, wide, count, dy, now.matrix, {lane.partial.data(), wide},
                             begun);
            begun = true;
            if (layer.b_gradient == nullptr) return;
            (*lane.multiply)(count, rank, tokens, {dy.at, dy.stride, true},
                             {low + now.slot * rank, columns},
                             {layer.b_gradient + now.from * rank, rank}, true);
        });
        if (!begun) std::fill_n(lane.partial.data(), tokens * wide, 0.0F);
    });
    combine(group, tokens, dx);
    if (group.a_gradient != nullptr && columns > 0) a_gradient(group, tokens, x);
}

void Projections::combine(const LinearGroup& group, std::size_t tokens, float* dx) {
    const std::size_t width = width_of(group);
    const std::size_t columns = group.adapted * adapter_.rank;
    const std::size_t wide = width + columns;
    const bool drops = adapter_.drop > 0 && group.drop_key != 0;
    lanes_.split(tokens, [&](std::size_t number, std::size_t from, std::size_t to) {
        if (from == to) return;
        Lane& lane = state_[number];
        for (std::size_t r = from; r < to; ++r) {
            float* out = dx + r * width;
            float* low = dlow_.data() + r * columns;
            std::fill_n(out, width, 0.0F);
            std::fill_n(low, columns, 0.0F);
            for (const Lane& other : state_) {
                kernels().add(width, other.partial.data() + r * wide, out);
                kernels().add(columns, other.partial.data() + r * wide + width, low);
            }
            for (std::size_t i = 0; i < columns; ++i)
                low[i] *= adapter_.scale;
        }
        if (columns == 0) return;
        const In dlow{dlow_.data() + from * columns, columns};
        if (!drops) {
            (*lane.multiply)(to - from, width, columns, dlow, {group.a, width},
                             {dx + from * width, width}, true);
            return;
        }
        lane.dropped.resize(std::max(lane.dropped.size(), (to - from) * width));
        (*lane.multiply)(to - from, width, columns, dlow, {group.a, width},
                         {lane.dropped.data(), width});
        for (std::size_t r = from; r < to; ++r) {
            float* one = lane.dropped.data() + (r - from) * width;
            kernels().drop(width, group.drop_key + r * 0x9E3779B97F4A7C15ULL, adapter_.drop, one,
                           lane.row.data());
            kernels().add(width, lane.row.data(), dx + r * width);
        }
    });
}

void Projections::a_gradient(const LinearGroup& group, std::size_t tokens, const float* x) {
    const std::size_t width = width_of(group);
    const std::size_t columns = group.adapted * adapter_.rank;
    lanes_.run([&](std::size_t number) {
        const auto [from, to] = part_of(width, number, lanes_.count());
        if (from == to) return;
        Lane& lane = state_[number];
        const float* input = dropped(group, 0, tokens, x, width, lane.dropped);
        (*lane.multiply)(columns, to - from, tokens, {dlow_.data(), columns, true},
                         {input + from, width}, {group.a_gradient + from, width}, true);
    });
}

}  // namespace molly::train
