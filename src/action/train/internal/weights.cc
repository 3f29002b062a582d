#include "train/internal/weights.h"

#include <cmath>

#include <fmt/format.h>

#include "train/internal/random.h"

namespace molly::train {
namespace {

bool writes_residual(const std::string& name) {
    return name.ends_with("attn_output.weight") || name.ends_with("ffn_down.weight");
}

}  // namespace

Layout::Layout(const Shape& shape) {
    const auto add = [this](std::string name, std::size_t rows, std::size_t columns, bool decays) {
        tensors.push_back({std::move(name), rows, columns, size, decays});
        const std::size_t offset = size;
        size += rows * columns;
        return offset;
    };
    const std::size_t width = shape.embed;
    const std::size_t keys = shape.key_width();
    embedding = add("token_embd.weight", shape.vocabulary, width, false);
    for (std::uint32_t i = 0; i < shape.layers; ++i) {
        const auto name = [i](const char* part) {
            return fmt::format("blk.{}.{}.weight", i, part);
        };
        LayerLayout layer{};
        layer.attention_norm = add(name("attn_norm"), 1, width, false);
        layer.query = add(name("attn_q"), width, width, true);
        layer.key = add(name("attn_k"), keys, width, true);
        layer.value = add(name("attn_v"), keys, width, true);
        layer.output = add(name("attn_output"), width, width, true);
        layer.feed_norm = add(name("ffn_norm"), 1, width, false);
        layer.gate = add(name("ffn_gate"), shape.feed_forward, width, true);
        layer.up = add(name("ffn_up"), shape.feed_forward, width, true);
        layer.down = add(name("ffn_down"), width, shape.feed_forward, true);
        layers.push_back(layer);
    }
    output_norm = add("output_norm.weight", 1, width, false);
    head = shape.tied ? embedding : add("output.weight", shape.vocabulary, width, true);
}

std::vector<float> make_weights(const Shape& shape, const Layout& layout, std::uint64_t seed) {
    std::vector<float> weights(layout.size);
    std::uint64_t stream = 0;
    for (const Tensor& tensor : layout.tensors) {
        Random random(seed, ++stream);
        const double deviation =
            writes_residual(tensor.name) ? 0.02 / std::sqrt(2.0 * shape.layers) : 0.02;
        for (std::size_t i = 0; i < tensor.size(); ++i) {
            weights[tensor.offset + i] =
                tensor.rows == 1 ? 1.0F : static_cast<float>(random.normal() * deviation);
        }
    }
    return weights;
}

}  // namespace molly::train
