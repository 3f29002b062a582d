#pragma once
// Causal grouped-query attention over packed sequences, forward and backward, in blocks of queries:
// the scores of a whole sequence never exist at once, and backward makes them again.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "train/internal/matmul.h"

namespace molly::train {

struct AttentionShape {
    std::size_t heads = 0;
    std::size_t key_heads = 0;  ///< divides `heads`
    std::size_t head_width = 0;
    std::size_t context = 0;  ///< tokens of the longest sequence
    float scale = 1;          ///< of scores

    std::size_t query_width() const noexcept { return heads * head_width; }
    std::size_t key_width() const noexcept { return key_heads * head_width; }
};

/// The arrays of one sequence. Queries and outputs are [tokens, query_width], keys and values
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
    Attention(const AttentionShape& shape, Matmul& multiply);

    /// One head of the keys, with the heads of queries that share it, or all of them.
    /// first[t]: the earliest token that token t may look at.
    void forward(std::size_t tokens, const std::uint32_t* first, const AttentionArrays& arrays,
                 std::size_t key_head);
    void forward(std::size_t tokens, const std::uint32_t* first, const AttentionArrays& arrays);
    void backward(std::size_t tokens, const std::uint32_t* first, const AttentionArrays& arrays,
                  const AttentionGradients& gradients, std::size_t key_head);
    void backward(std::size_t tokens, const std::uint32_t* first, const AttentionArrays& arrays,
                  const AttentionGradients& gradients);

private:
    struct Block;
    Block block(std::size_t start, std::size_t tokens, const std::uint32_t* first) const;
    void score(const Block& block, std::size_t head, const AttentionArrays& arrays);

    AttentionShape shape_;
    Matmul* multiply_;
    std::size_t stride_;
    std::vector<float> scores_;
    std::vector<float> dscores_;
    std::vector<float> mean_;
};

}  // namespace molly::train
