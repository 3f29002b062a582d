#pragma once
// Two engines of one vocabulary answer a request together: one drafts tokens, the other checks
// them. What is said is the checking one's answer, whatever was drafted.
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/task.h"

namespace molly::engine {

/// Tokens of one block.
inline constexpr std::uint32_t draft_block_tokens_max = 32;
/// How long an answer waits for its next block before it goes on alone.
inline constexpr std::chrono::milliseconds draft_patience{1000};
/// How long a session waits for its request before it ends.
inline constexpr std::chrono::milliseconds draft_unclaimed_max{10'000};

/// A session in which drafts from elsewhere are checked.
struct VerificationTerms {
    std::string id;          ///< unique
    std::string owner;       ///< nobody else may use it
    std::string vocabulary;  ///< of the drafter; as Description::vocabulary
    bool waits = false;      ///< the answer waits for drafts from its second token on
    std::chrono::milliseconds patience = draft_patience;
    std::chrono::milliseconds unclaimed_max = draft_unclaimed_max;
};

/// Tokens that the answer may go on with.
struct DraftBlock {
    std::uint32_t from = 0;  ///< place of the first in the answer
    std::vector<std::int32_t> tokens;
    bool alone = false;  ///< the answer goes on without waiting; the tokens say nothing
};

/// What checking a block brought.
struct Checked {
    std::uint32_t accepted = 0;  ///< tokens of the block that came
    /// Of the answer, from the block's place on: those that were accepted, the one that came
    /// instead of the next, and what came meanwhile where the block was late.
    std::vector<std::int32_t> tokens;
    bool ended = false;  ///< no more will come
    double check_ms = 0;
    double step_ms = 0;  ///< of a step without drafts, as measured; 0: not yet
};

/// The checking side of one answer. Safe from any thread.
class Verification {
public:
    virtual ~Verification() = default;
    /// The answer to this request is the one whose tokens are checked. Errors: conflict (another
    /// request has the session).
    virtual Result<void> serve(std::string request_id) = 0;
    /// Suspends until the answer has passed the block or ended. One at a time. Errors:
    /// invalid_request (a token outside the vocabulary, too long a block, a place behind the
    /// answer), conflict (another block is being checked).
    virtual Task<Result<Checked>> check(DraftBlock block) = 0;
};

/// The drafting side of one answer, which goes on elsewhere. Its request ends with it. Used by one
/// coroutine.
class Drafting {
public:
    virtual ~Drafting() = default;
    /// The likeliest tokens behind the prompt, the answer so far and `came`, which is what came of
    /// it since the last call. At most `most`; fewer before the end of an answer. Nothing that was
    /// computed before is computed again while it holds. Errors: exhausted (the context is full),
    /// cancelled, or what keeps the prompt from being read.
    virtual Task<Result<std::vector<std::int32_t>>> propose(std::vector<std::int32_t> came,
                                                            std::uint32_t most) = 0;
    /// Ends what is being computed; from any thread.
    virtual void give_up() = 0;
};

}  // namespace molly::engine
