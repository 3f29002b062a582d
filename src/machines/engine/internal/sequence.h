#pragma once
// One request while it runs, or while it waits to go on. Owned by one thread at a time.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/internal/acceptance.h"
#include "engine/internal/job.h"
#include "engine/internal/prefix_keeper.h"

namespace molly::engine {

/// What may follow a sequence's next token.
struct Draft {
    std::vector<Token> tokens;
    DraftKind kind = DraftKind::copy_short;
    std::uint32_t rows = 0;  // of the tokens, the first ones, which this step checks
};

struct Sequence {
    std::unique_ptr<Job> job;
    std::vector<Token> feed;          // to be computed before the next token is chosen
    std::uint32_t fed = 0;            // of these, those that are
    std::uint32_t prompt_tokens = 0;  // of the request
    std::uint32_t cached = 0;         // of the prompt, what an earlier request left
    Token next = 0;                   // to be fed, once `feed` is
    std::int32_t output = -1;         // place of its logits in the batch, in this step
    std::uint32_t answer_tokens = 0;
    std::uint32_t reasoning_tokens = 0;
    Draft draft;                       // of this step
    std::optional<AcceptRates> rates;  // once something was drafted
    bool called_tools = false;
    bool parked = false;     // once at least: it goes before those who have not begun
    std::string read;        // the answer so far, for its reader
    std::uint32_t keep = 0;  // tokens to be saved once they are computed
    bool looked = false;     // for what lies on disk
    std::shared_ptr<const FetchedPrefix> fetched;  // of the prompt's beginning, until it starts

    std::uint32_t left() const noexcept { return static_cast<std::uint32_t>(feed.size()) - fed; }
    /// What the next step may read: up to what is to be saved, which is all that the place then
    /// holds.
    std::uint32_t readable() const noexcept { return keep > fed ? keep - fed : left(); }
};

}  // namespace molly::engine
