#include "engine/internal/plan_step.h"

#include <algorithm>

namespace molly::engine {

std::vector<std::uint32_t> plan_step(std::span<const SequenceView> sequences,
                                     const StepLimits& limits) {
    std::vector<std::uint32_t> plan(sequences.size(), 0);
    std::uint32_t answering = 0;
    std::uint32_t prompts = 0;
    for (std::size_t i = 0; i < sequences.size(); ++i) {
        if (sequences[i].paused) continue;
        if (sequences[i].prompt_left > 0) {
            ++prompts;
        } else {
            plan[i] = 1;
            ++answering;
        }
    }
    std::uint32_t room = limits.tokens_max - std::min(limits.tokens_max, answering);
    if (answering > 0) room = std::min(room, limits.chunk_max);
    // Several rounds: what a short prompt does not need goes to the others.
    while (room > 0 && prompts > 0) {
        const std::uint32_t share = std::max(1U, room / prompts);
        prompts = 0;
        for (std::size_t i = 0; i < sequences.size() && room > 0; ++i) {
            const auto& sequence = sequences[i];
            if (sequence.paused || plan[i] >= sequence.prompt_left) continue;
            const std::uint32_t more = std::min({share, room, sequence.prompt_left - plan[i]});
            plan[i] += more;
            room -= more;
            if (plan[i] < sequence.prompt_left) ++prompts;
        }
    }
    return plan;
}

}  // namespace molly::engine
