#pragma once
// Decides what the next forward pass computes. Pure.
#include <cstdint>
#include <span>
#include <vector>

namespace molly::engine {

/// What the plan needs to know of one sequence.
struct SequenceView {
    std::uint32_t prompt_left = 0;  ///< prompt tokens that are not computed yet
    bool paused = false;            ///< its reader is slow
};

struct StepLimits {
    std::uint32_t tokens_max = 512;
    std::uint32_t chunk_max = 128;  ///< prompt tokens of all sequences while another one answers
};

/// How many tokens each sequence runs in the next step; 0 means it waits. Whoever answers gets one
/// token, always; prompts share what is left in equal chunks, so that a long one stalls nobody.
/// shape: [sequences] in and out; the sum is at most tokens_max, which is at least [sequences].
std::vector<std::uint32_t> plan_step(std::span<const SequenceView> sequences,
                                     const StepLimits& limits);

}  // namespace molly::engine
