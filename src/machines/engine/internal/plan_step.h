#pragma once
// Decides what the next forward pass computes, and who makes room when memory is short. Pure.
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace molly::engine {

/// What the plan needs to know of one sequence.
struct SequenceView {
    std::uint32_t prompt_left = 0;  ///< prompt tokens that are not computed yet
    bool paused = false;            ///< its reader is slow
    std::uint32_t held = 0;         ///< tokens in the context: what parking it would lose
    std::uint32_t owned = 0;        ///< tokens that it has memory for, in whole blocks
};

struct StepLimits {
    std::uint32_t tokens_max = 512;
    std::uint32_t chunk_max = 128;  ///< prompt tokens of all sequences while another one answers
    /// Tokens that memory may be added for, in whole blocks.
    std::uint32_t cells_free = std::numeric_limits<std::uint32_t>::max();
    std::uint32_t block = 64;  ///< tokens of memory that come and go together
    bool may_park = true;
};

struct StepPlan {
    std::vector<std::uint32_t> tokens;  ///< shape: [sequences]; 0: it waits
    std::vector<std::size_t> park;      ///< give up their memory, and are computed again later
};

/// Memory for so many tokens in whole blocks.
constexpr std::uint32_t in_blocks(std::uint32_t tokens, std::uint32_t block) {
    return (tokens + block - 1) / block * block;
}
/// Memory that a sequence lacks for `tokens` more.
std::uint32_t cells_missing(const SequenceView& sequence, std::uint32_t tokens,
                            std::uint32_t block);

/// How many tokens each sequence runs in the next step. Whoever answers gets one token; prompts
/// share what is left in equal chunks, so that a long one stalls nobody. The sum is at most
/// tokens_max, which is at least [sequences].
/// The memory that is added is at most cells_free and what the parked ones own. When the answers do
/// not fit in it, or nobody could go on, the sequence with the fewest tokens is parked, and the
/// next one; whoever has most goes on, so that some request always comes to its end.
StepPlan plan_step(std::span<const SequenceView> sequences, const StepLimits& limits);

}  // namespace molly::engine
