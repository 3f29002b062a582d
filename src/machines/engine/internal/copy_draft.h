#pragma once
// Drafts an answer out of its own text: what followed the last tokens when they stood there before.
// Pure.
#include <cstdint>
#include <span>
#include <vector>

#include <llama.h>

namespace molly::engine {

struct CopyDraft {
    std::vector<llama_token> tokens;  ///< empty: the end of the text is new
    std::uint32_t matched = 0;        ///< tokens at the end that stood there before
};

/// Fewer tokens that agree are chance.
inline constexpr std::uint32_t copy_matched_least = 2;
/// Longer agreement says no more.
inline constexpr std::uint32_t copy_matched_enough = 16;

/// Up to `most` tokens that may follow `text` and `next` (prompt lookup decoding: Saxena, 2023):
/// the ones after the longest agreement, the latest among equally long ones. A draft may run on
/// into itself, so that a period is copied for ever. Takes time in the length of the text.
CopyDraft draft_by_copy(std::span<const llama_token> text, llama_token next, std::uint32_t most);

}  // namespace molly::engine
