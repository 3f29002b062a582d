#include "engine/internal/plan_step.h"

#include <algorithm>

namespace molly::engine {
namespace {

using Tokens = std::vector<std::uint32_t>;

/// Who runs how many tokens, if memory were no matter.
Tokens share_tokens(std::span<const SequenceView> sequences, const std::vector<bool>& parked,
                    const StepLimits& limits) {
    Tokens plan(sequences.size(), 0);
    std::uint32_t answering = 0;
    std::uint32_t prompts = 0;
    const auto runs = [&](std::size_t i) { return !sequences[i].paused && !parked[i]; };
    for (std::size_t i = 0; i < sequences.size(); ++i) {
        if (!runs(i)) continue;
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
            if (!runs(i) || plan[i] >= sequence.prompt_left) continue;
            const std::uint32_t more = std::min({share, room, sequence.prompt_left - plan[i]});
            plan[i] += more;
            room -= more;
            if (plan[i] < sequence.prompt_left) ++prompts;
        }
    }
    return plan;
}

/// Cuts the prompts' tokens to what memory there is. False: not even the answers fit, or nobody
/// could run.
bool fit(std::span<const SequenceView> sequences, std::uint32_t cells, std::uint32_t block,
         Tokens& plan) {
    std::uint32_t left = cells;
    bool wanted = false;
    bool runs = false;
    for (std::size_t i = 0; i < sequences.size(); ++i) {
        wanted = wanted || plan[i] > 0;
        if (plan[i] == 0 || sequences[i].prompt_left > 0) continue;
        const std::uint32_t missing = cells_missing(sequences[i], plan[i], block);
        if (missing > left) return false;
        left -= missing;
        runs = true;
    }
    for (std::size_t i = 0; i < sequences.size(); ++i) {
        const SequenceView& sequence = sequences[i];
        if (plan[i] == 0 || sequence.prompt_left == 0) continue;
        const std::uint64_t most = std::uint64_t{sequence.owned} -
                                   std::min(sequence.owned, sequence.held) + left / block * block;
        plan[i] = static_cast<std::uint32_t>(std::min<std::uint64_t>(plan[i], most));
        left -= cells_missing(sequence, plan[i], block);
        runs = runs || plan[i] > 0;
    }
    return runs || !wanted;
}

/// Who loses least by being computed again; whoever has most of those that run is never asked.
std::size_t least_lost(std::span<const SequenceView> sequences, const std::vector<bool>& parked) {
    const std::size_t none = sequences.size();
    std::size_t most = none;
    for (std::size_t i = 0; i < sequences.size(); ++i) {
        if (parked[i] || sequences[i].paused) continue;
        if (most == none || sequences[i].held > sequences[most].held) most = i;
    }
    std::size_t least = none;
    for (std::size_t i = 0; i < sequences.size(); ++i) {
        // What waits for a reader and has no memory gives none.
        const bool empty = sequences[i].paused && sequences[i].owned == 0;
        if (parked[i] || i == most || empty) continue;
        if (least == none || sequences[i].held <= sequences[least].held) least = i;
    }
    return least;
}

}  // namespace

std::uint32_t cells_missing(const SequenceView& sequence, std::uint32_t tokens,
                            std::uint32_t block) {
    const std::uint32_t wanted = tokens == 0 ? 0 : in_blocks(sequence.held + tokens, block);
    return wanted - std::min(wanted, sequence.owned);
}

StepPlan plan_step(std::span<const SequenceView> sequences, const StepLimits& limits) {
    StepPlan plan;
    std::vector<bool> parked(sequences.size(), false);
    std::uint32_t cells = limits.cells_free;
    for (;;) {
        plan.tokens = share_tokens(sequences, parked, limits);
        if (fit(sequences, cells, limits.block, plan.tokens)) return plan;
        const std::size_t victim =
            limits.may_park ? least_lost(sequences, parked) : sequences.size();
        if (victim == sequences.size()) break;
        parked[victim] = true;
        plan.park.push_back(victim);
        cells +=
            std::min(std::numeric_limits<std::uint32_t>::max() - cells, sequences[victim].owned);
    }
    // One alone that does not fit, or none may be parked: those that fit go on.
    for (std::size_t i = 0; i < sequences.size(); ++i) {
        const std::uint32_t missing = cells_missing(sequences[i], plan.tokens[i], limits.block);
        if (missing > cells) plan.tokens[i] = 0;
        cells -= plan.tokens[i] > 0 ? missing : 0;
    }
    return plan;
}

}  // namespace molly::engine
