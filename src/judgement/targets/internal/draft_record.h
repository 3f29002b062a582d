#pragma once
// Whether drafting for another Molly pays: what was measured of it, and what that means. Pure.
#include <chrono>
#include <cstdint>

#include "base/clock.h"

namespace molly::targets::internal {

/// Milliseconds, on average. 0: not measured yet.
struct DraftCosts {
    double rate = 0.6;    ///< how often a drafted token comes, when those before it did
    double draft_ms = 0;  ///< of one drafted token here
    double round_ms = 0;  ///< of a call there and back, without the check
    double step_ms = 0;   ///< of one token there, without drafts
    double row_ms = 0;    ///< that each drafted token adds to a step there
};

struct BlockChoice {
    std::uint32_t tokens = 0;
    double gain = 1;  ///< tokens per second, over those of the other node alone
};

/// How many tokens the next block should have, at most `most`, so that most tokens come per second:
/// a block of n brings 1 + rate + ... + rate^n tokens (Leviathan et al., 2023, equation 1) and
/// takes n drafts, a round, and a step there with n more rows. None where that is not at least 5%
/// faster than the other node alone. A few as long as something is not measured.
BlockChoice choose_block(const DraftCosts& costs, std::uint32_t most);

/// What one other node's answers have shown. It rests after it did not pay, longer each time, and
/// then everything is measured anew: what was measured long ago may be true no more.
class DraftRecord {
public:
    struct Block {
        std::uint32_t drafted = 0;
        std::uint32_t accepted = 0;
        double draft_ms = 0;  ///< of all its tokens
        double call_ms = 0;
        double check_ms = 0;  ///< of the call, as the other node says
        double step_ms = 0;   ///< likewise
        bool first = false;   ///< of its request: prompts were read meanwhile
    };
    void saw(const Block& block);
    /// A whole answer came, `together` or without any draft, at so many milliseconds a token.
    void answered(bool together, double token_ms, MonoTime now);
    /// The other node does not do it, or it did not pay.
    void rest(MonoTime now);

    bool pays(MonoTime now) const noexcept { return now >= rests_until_; }
    const DraftCosts& costs() const noexcept { return costs_; }

private:
    static constexpr std::chrono::minutes rest_first{1};
    static constexpr std::chrono::minutes rest_longest{32};

    DraftCosts costs_;
    double alone_ms_ = 0;  // of a token, in whole answers
    double together_ms_ = 0;
    MonoTime rests_until_{};
    std::chrono::minutes rest_{rest_first};
};

}  // namespace molly::targets::internal
