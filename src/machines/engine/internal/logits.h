#pragma once
// Passes over one row of logits, which has as many numbers as the vocabulary has tokens: they lie
// on the engine thread's way to the next step. Pure.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace molly::engine {

/// The place of the largest number, the first of equal ones. At least one number.
std::size_t largest_at(std::span<const float> logits);

/// log(sum of exp(x)), to about 1e-6: the normalizer that turns logits into log-probabilities. At
/// least one number, none of them NaN.
float log_sum_exp(std::span<const float> logits);

/// Places of the `count` largest numbers, the largest first.
std::vector<std::int32_t> largest_places(std::span<const float> logits, std::size_t count);

}  // namespace molly::engine
