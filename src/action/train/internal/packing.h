#pragma once
// Examples packed into rows of equal length, so that little of a batch is padding. The sequences of
// one row do not see each other.
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "train/examples.h"
#include "train/internal/pass.h"

namespace molly::train {

/// Arrays of a batch of rows; owner[t] is the number of the sequence that token t belongs to, and
/// `nobody` for padding.
struct PackedBatch {
    static constexpr std::uint32_t nobody = ~0U;

    std::vector<std::int32_t> input, target;
    std::vector<float> weight;
    std::vector<std::uint32_t> first, owner;
    std::size_t rows = 0;
    std::size_t context = 0;

    Batch view() const;
};

class Packing {
public:
    /// First fit, longest first (Johnson, 1973). A sequence of n tokens takes n - 1 places.
    /// The sequences must stay where they are; each fits into a row.
    Packing(std::vector<const Sequence*> sequences, std::size_t context);

    std::size_t rows() const noexcept { return rows_.size(); }
    /// Tokens that are learned in all rows.
    std::uint64_t learned() const noexcept { return learned_; }
    /// The rows of one batch.
    PackedBatch batch(std::span<const std::size_t> rows) const;
    /// `count` rows for a step: every row once an epoch, in an order that the seed decides.
    std::vector<std::size_t> rows_of(std::uint64_t step, std::size_t count,
                                     std::uint64_t seed) const;

private:
    std::vector<const Sequence*> sequences_;
    std::size_t context_;
    std::vector<std::vector<std::uint32_t>> rows_;  // sequences of each row
    std::uint64_t learned_ = 0;
};

/// A share of the examples to hold out, chosen by the hash of their tokens, so that copies of one
/// stay on one side. Gives training and held-out rows, at least one each where there are two
/// different ones.
std::pair<std::vector<const Example*>, std::vector<const Example*>> split_examples(
    const std::vector<Example>& examples, double share);

}  // namespace molly::train
