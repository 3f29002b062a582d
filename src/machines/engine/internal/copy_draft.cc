#include "engine/internal/copy_draft.h"

#include <cstddef>

namespace molly::engine {
namespace {

/// Tokens before `end` that equal those at the end of the text.
std::uint32_t agreement(std::span<const llama_token> text, std::size_t end) {
    std::uint32_t same = 0;
    while (same + 1 < copy_matched_enough && same < end &&
           text[end - 1 - same] == text[text.size() - 1 - same])
        ++same;
    return same;
}

}  // namespace

CopyDraft draft_by_copy(std::span<const llama_token> text, llama_token next, std::uint32_t most) {
    CopyDraft draft;
    std::size_t from = text.size();
    for (std::size_t at = text.size(); at > 0 && draft.matched < copy_matched_enough; --at) {
        if (text[at - 1] != next) continue;
        const std::uint32_t matched = 1 + agreement(text, at - 1);
        if (matched <= draft.matched) continue;
        draft.matched = matched;
        from = at;
    }
    if (draft.matched < copy_matched_least) return {};
    // Behind the text stands `next`, behind that the draft itself.
    for (std::size_t at = from; draft.tokens.size() < most; ++at) {
        if (at < text.size()) {
            draft.tokens.push_back(text[at]);
        } else if (at == text.size()) {
            draft.tokens.push_back(next);
        } else {
            draft.tokens.push_back(draft.tokens[at - text.size() - 1]);
        }
    }
    return draft;
}

}  // namespace molly::engine
