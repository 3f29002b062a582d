#pragma once
// Small shapes and random batches for tests.
#include <cstdint>
#include <vector>

#include "train/internal/pass.h"
#include "train/internal/random.h"

namespace molly::train {

inline Shape small_shape(bool tied = true, std::uint32_t key_heads = 2) {
    Shape shape;
    shape.vocabulary = 37;
    shape.embed = 16;
    shape.layers = 2;
    shape.heads = 4;
    shape.key_heads = key_heads;
    shape.feed_forward = 24;
    shape.context = 80;
    shape.tied = tied;
    return shape;
}

/// A batch that owns its arrays.
struct OwnedBatch {
    std::vector<std::int32_t> input, target;
    std::vector<float> weight;
    std::vector<std::uint32_t> first;
    std::size_t sequences = 0;
    std::size_t tokens = 0;

    Batch view() const {
        Batch batch;
        batch.sequences = sequences;
        batch.tokens = tokens;
        batch.input = input;
        batch.target = target;
        batch.weight = weight;
        batch.first = first;
        return batch;
    }
};

/// Random tokens; in every sequence a second document begins at `cut`, and some targets do not
/// count.
inline OwnedBatch random_batch(const Shape& shape, std::size_t sequences, std::size_t tokens,
                               std::uint64_t seed, std::size_t cut = 9) {
    Random random(seed);
    OwnedBatch batch;
    batch.sequences = sequences;
    batch.tokens = tokens;
    for (std::size_t i = 0; i < sequences * tokens; ++i) {
        batch.input.push_back(static_cast<std::int32_t>(random.below(shape.vocabulary)));
        batch.target.push_back(static_cast<std::int32_t>(random.below(shape.vocabulary)));
        batch.weight.push_back(random.below(4) == 0 ? 0.0F : 1.0F);
        batch.first.push_back(i % tokens >= cut ? static_cast<std::uint32_t>(cut) : 0U);
    }
    return batch;
}

}  // namespace molly::train
