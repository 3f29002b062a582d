#include "train/internal/attention.h"

#include <algorithm>

#include "train/internal/kernels.h"

namespace molly::train {

namespace {
constexpr std::size_t block_rows = 64;
}

struct Attention::Block {
    std::size_t row;      ///< first query
    std::size_t column;   ///< first key that any of them sees
    AttentionBlock part;  ///< as the kernels want it
};

Attention::Attention(const AttentionShape& shape, Matmul& multiply)
    : shape_(shape),
      multiply_(&multiply),
      stride_(shape.context + 16),  // not a power of two: rows would share cache sets
      scores_(block_rows * stride_),
      dscores_(block_rows * stride_),
      mean_(block_rows) {}

Attention::Block Attention::block(std::size_t start, std::size_t tokens,
                                  const std::uint32_t* first) const {
    const std::size_t rows = std::min(block_rows, tokens - start);
    // Rounded down, so that few sizes of products occur: each costs a kernel made for it.
    const std::size_t column =
        *std::min_element(first + start, first + start + rows) / block_rows * block_rows;
    AttentionBlock part;
    part.rows = rows;
    part.columns = start + rows - column;
    part.stride = stride_;
    part.row_start = start;
    part.column_start = column;
    part.first = first + start;
    part.scale = shape_.scale;
    return {start, column, part};
}

void Attention::score(const Block& block, std::size_t head, const AttentionArrays& arrays) {
    const std::size_t width = shape_.head_width;
    const std::size_t key_head = head / (shape_.heads / shape_.key_heads);
    const float* query = arrays.query + block.row * shape_.query_width() + head * width;
    const float* key = arrays.key + block.column * shape_.key_width() + key_head * width;
    (*multiply_)(block.part.rows, block.part.columns, width, {query, shape_.query_width()},
                 {key, shape_.key_width(), true}, {scores_.data(), stride_});
}

void Attention::forward(std::size_t tokens, const std::uint32_t* first,
                        const AttentionArrays& arrays) {
    for (std::size_t key_head = 0; key_head < shape_.key_heads; ++key_head)
        forward(tokens, first, arrays, key_head);
}

void Attention::forward(std::size_t tokens, const std::uint32_t* first,
                        const AttentionArrays& arrays, std::size_t key_head) {
    const std::size_t width = shape_.head_width;
    const std::size_t queries = shape_.query_width();
    const std::size_t keys = shape_.key_width();
    const std::size_t shared = shape_.heads / shape_.key_heads;
    for (std::size_t head = key_head * shared; head < (key_head + 1) * shared; ++head) {
        for (std::size_t start = 0; start < tokens; start += block_rows) {
            const Block now = block(start, tokens, first);
            score(now, head, arrays);
            kernels().softmax(now.part, scores_.data(), arrays.log_sum + head * tokens + start);
            (*multiply_)(now.part.rows, width, now.part.columns, {scores_.data(), stride_},
                         {arrays.value + now.column * keys + key_head * width, keys},
                         {arrays.out + start * queries + head * width, queries});
        }
    }
}

void Attention::backward(std::size_t tokens, const std::uint32_t* first,
                         const AttentionArrays& arrays, const AttentionGradients& gradients) {
    for (std::size_t key_head = 0; key_head < shape_.key_heads; ++key_head)
        backward(tokens, first, arrays, gradients, key_head);
}

void Attention::backward(std::size_t tokens, const std::uint32_t* first,
                         const AttentionArrays& arrays, const AttentionGradients& gradients,
                         std::size_t key_head) {
    const std::size_t width = shape_.head_width;
    const std::size_t queries = shape_.query_width();
    const std::size_t keys = shape_.key_width();
    const std::size_t shared = shape_.heads / shape_.key_heads;
    const std::size_t key_at = key_head * width;
    for (std::size_t t = 0; t < tokens; ++t) {
        std::fill_n(gradients.dkey + t * keys + key_at, width, 0.0F);
        std::fill_n(gradients.dvalue + t * keys + key_at, width, 0.0F);
    }
    for (std::size_t head = key_head * shared; head < (key_head + 1) * shared; ++head) {
        const std::size_t at = head * width;
        for (std::size_t start = 0; start < tokens; start += block_rows) {
            const Block now = block(start, tokens, first);
            const std::size_t rows = now.part.rows;
            const std::size_t columns = now.part.columns;
            const std::size_t key_start = now.column * keys + key_at;
            const float* dout = gradients.dout + start * queries + at;
            const float* out = arrays.out + start * queries + at;
            score(now, head, arrays);
            kernels().softmax_again(now.part, scores_.data(),
                                    arrays.log_sum + head * tokens + start);
            (*multiply_)(rows, columns, width, {dout, queries},
                         {arrays.value + key_start, keys, true}, {dscores_.data(), stride_});
            (*multiply_)(columns, width, rows, {scores_.data(), stride_, true}, {dout, queries},
                         {gradients.dvalue + key_start, keys}, true);
            for (std::size_t r = 0; r < rows; ++r) {
                mean_[r] =
                    static_cast<float>(kernels().dot(width, dout + r * queries, out + r * queries));
            }
            kernels().softmax_backward(now.part, scores_.data(), mean_.data(), dscores_.data());
            (*multiply_)(rows, width, columns, {dscores_.data(), stride_},
                         {arrays.key + key_start, keys},
                         {gradients.dquery + start * queries + at, queries});
            (*multiply_)(columns, width, rows, {dscores_.data(), stride_, true},
                         {arrays.query + start * queries + at, queries},
                         {gradients.dkey + key_start, keys}, true);
        }
    }
}

}  // namespace molly::train
