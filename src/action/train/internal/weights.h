#pragma once
// All weights of one model in one array, and where each tensor lies in it. Gradients and the
// optimizer's moments are arrays of the same layout.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "train/shape.h"

namespace molly::train {

/// One tensor, [rows, columns], named as GGUF names it. A vector has one row.
struct Tensor {
    std::string name;
    std::size_t rows = 1;
    std::size_t columns = 0;
    std::size_t offset = 0;  ///< floats from the start of the array
    bool decays = false;     ///< whether weight decay applies

    std::size_t size() const noexcept { return rows * columns; }
};

/// Offsets of one layer's tensors.
struct LayerLayout {
    std::size_t attention_norm, query, key, value, output, feed_norm, gate, up, down;
};

/// Where everything lies for one shape.
struct Layout {
    explicit Layout(const Shape& shape);

    std::vector<Tensor> tensors;
    std::size_t embedding = 0;
    std::size_t output_norm = 0;
    std::size_t head = 0;  ///< equals `embedding` when tied
    std::vector<LayerLayout> layers;
    std::size_t size = 0;  ///< floats in all
};

/// Random weights: normal with deviation 0.02, those that write into the residual stream divided by
/// sqrt(2 * layers) (GPT-2); norms are 1. The same seed gives the same weights.
std::vector<float> make_weights(const Shape& shape, const Layout& layout, std::uint64_t seed);

}  // namespace molly::train
