#include "targets/internal/draft_record.h"

#include <algorithm>

namespace molly::targets::internal {
namespace {

constexpr double fresh = 0.2;         // weight of the latest measurement
constexpr double fresh_token = 0.05;  // likewise, of one drafted token
constexpr std::uint32_t trial = 4;    // tokens, while something is not known
// A gain below is noise.
constexpr double gain_least = 1.05;

void mix(double& average, double measured) {
    average = average == 0 ? measured : average + fresh * (measured - average);
}

}  // namespace

BlockChoice choose_block(const DraftCosts& costs, std::uint32_t most) {
    BlockChoice best;
    if (costs.draft_ms == 0 || costs.step_ms == 0 || costs.round_ms == 0) {
        best.tokens = std::min(trial, most);
        return best;
    }
    double came = 1;
    double all_came = 1;
    for (std::uint32_t n = 1; n <= most; ++n) {
        all_came *= costs.rate;
        came += all_came;
        const double took = n * costs.draft_ms + costs.round_ms + costs.step_ms + n * costs.row_ms;
        const double gain = came * costs.step_ms / took;
        if (gain > best.gain && gain >= gain_least) best = {.tokens = n, .gain = gain};
    }
    return best;
}

void DraftRecord::saw(const Block& block) {
    for (std::uint32_t i = 0; i < std::min(block.accepted + 1, block.drafted); ++i)
        costs_.rate += fresh_token * ((i < block.accepted ? 1 : 0) - costs_.rate);
    if (block.first) return;
    if (block.drafted > 0) mix(costs_.draft_ms, block.draft_ms / block.drafted);
    // A clock of microseconds says 0 of what is faster.
    constexpr double least = 1e-3;
    mix(costs_.round_ms, std::max(least, block.call_ms - block.check_ms));
    if (block.step_ms <= 0) return;
    mix(costs_.step_ms, block.step_ms);
    if (block.drafted > 0)
        mix(costs_.row_ms, std::max(0.0, block.check_ms - block.step_ms) / block.drafted);
}

void DraftRecord::answered(bool together, double token_ms, MonoTime now) {
    mix(together ? together_ms_ : alone_ms_, token_ms);
    if (!together) return;
    const double alone = alone_ms_ > 0 ? alone_ms_ : costs_.step_ms;
    if (alone > 0 && together_ms_ > alone) {
        rest(now);
    } else {
        rest_ = rest_first;
    }
}

void DraftRecord::rest(MonoTime now) {
    if (!pays(now)) return;  // another request has found out before
    rests_until_ = now + rest_;
    rest_ = std::min(rest_longest, 2 * rest_);
    costs_ = {};
    together_ms_ = 0;
}

}  // namespace molly::targets::internal
