#include "train/internal/attention.h"

#include <algorithm>
#include <cmath>

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

Attention::Attention(const Shape& shape, Matmul& multiply)
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
    part.scale = 1.0F / std::sqrt(static_cast<float>(shape_.head_width()));
    return {start, column, part};
}

void Attention::score(const Block& block, std::size_t head, const AttentionArrays& arrays) {
    const std::size_t width = shape_.head_width();
    const std::size_t key_head = head / (shape_.heads / shape_.key_heads);
    const float* query = arrays.query + block.row * shape_.embed + head * width;
    const float* key = arrays.key + block.column * shape_.key_width() + key_head * width;
    (*multiply_)(block.part.rows, block.part.columns, width, {query, shape_.embed},
                 {key, shape_.key_width(), true}, {scores_.data(), stride_});
}

void Attention::forward(std::size_t tokens, const std::uint32_t* first,
                        const AttentionArrays& arrays) {
    const std::size_t width = shape_.head_width();
    const std::size_t keys = shape_.key_width();
    for (std::size_t head = 0; head < shape_.heads; ++head) {
        const std::size_t key_at = head / (shape_.heads / shape_.key_heads) * width;
        for (std::size_t start = 0; start < tokens; start += block_rows) {
            const Block now = block(start, tokens, first);
            score(now, head, arrays);
            kernels().softmax(now.part, scores_.data(), arrays.log_sum + head * tokens + start);
            (*multiply_)(now.part.rows, width, now.part.columns, {scores_.data(), stride_},
                         {arrays.value + now.column * keys + key_at, keys},
                         {arrays.out + start * shape_.embed + head * width, shape_.embed});
        }
    }
}

void Attention::backward(std::size_t tokens, const std::uint32_t* first,
                         const AttentionArrays& arrays, const AttentionGradients& gradients) {
    const std::size_t width = shape_.head_width();
    const std::size_t keys = shape_.key_width();
    const std::size_t embed = shape_.embed;
    std::fill_n(gradients.dkey, tokens * keys, 0.0F);
    std::fill_n(gradients.dvalue, tokens * keys, 0.0F);
    for (std::size_t head = 0; head < shape_.heads; ++head) {
        const std::size_t at = head * width;
        const std::size_t key_at = head / (shape_.heads / shape_.key_heads) * width;
        for (std::size_t start = 0; start < tokens; start += block_rows) {
            const Block now = block(start, tokens, first);
            const std::size_t rows = now.part.rows;
            const std::size_t columns = now.part.columns;
            const std::size_t key_start = now.column * keys + key_at;
            const float* dout = gradients.dout + start * embed + at;
            const float* out = arrays.out + start * embed + at;
            score(now, head, arrays);
            kernels().softmax_again(now.part, scores_.data(),
                                    arrays.log_sum + head * tokens + start);
            (*multiply_)(rows, columns, width, {dout, embed},
                         {arrays.value + key_start, keys, true}, {dscores_.data(), stride_});
            (*multiply_)(columns, width, rows, {scores_.data(), stride_, true}, {dout, embed},
                         {gradients.dvalue + key_start, keys}, true);
            for (std::size_t r = 0; r < rows; ++r) {
                mean_[r] =
                    static_cast<float>(kernels().dot(width, dout + r * embed, out + r * embed));
            }
            kernels().softmax_backward(now.part, scores_.data(), mean_.data(), dscores_.data());
            (*multiply_)(rows, width, columns, {dscores_.data(), stride_},
                         {arrays.key + key_start, keys},
                         {gradients.dquery + start * embed + at, embed});
            (*multiply_)(columns, width, rows, {dscores_.data(), stride_, true},
                         {arrays.query + start * embed + at, embed},
                         {gradients.dkey + key_start, keys}, true);
        }
    }
}

}  // namespace molly::train
