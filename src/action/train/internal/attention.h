#pragma once
// Causal grouped-query attention over packed sequences, forward and backward, in blocks of queries:
// the scores of a whole sequence never exist at once, and backward makes them again.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "train/internal/matmul.h"
#include "train/shape.h"

namespace molly::train {

/// The arrays of one sequence. Queries and outputs are [tokens, embed], keys and values
/// [tokens, key_width].
struct AttentionArrays {
    const float* query;
    const float* key;
    const float* value;
    float* out;
    float* log_sum;  // shape: [heads, tokens]
};

struct AttentionGradients {
    const float* dout;
    float* dquery;  ///< written
    float* dkey;    ///< written
    float* dvalue;  ///< written
};

class Attention {
public:
    /// `multiply` must outlive it.
    Attention(const Shape& shape, Matmul& multiply);

    /// first[t]: the earliest token that token t may look at.
    void forward(std::size_t tokens, const std::uint32_t* first, const AttentionArrays& arrays);
    void backward(std::size_t tokens, const std::uint32_t* first, const AttentionArrays& arrays,
                  const AttentionGradients& gradients);

private:
    struct Block;
    Block block(std::size_t start, std::size_t tokens, const std::uint32_t* first) const;
    void score(const Block& block, std::size_t head, const AttentionArrays& arrays);

    Shape shape_;
    Matmul* multiply_;
    std::size_t stride_;
    std::vector<float> scores_;
    std::vector<float> dscores_;
    std::vector<float> mean_;
};

}  // namespace molly::train
