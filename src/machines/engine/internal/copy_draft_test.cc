#include "engine/internal/copy_draft.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace molly::engine {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Tokens = std::vector<llama_token>;

Tokens draft(const Tokens& text, llama_token next, std::uint32_t most) {
    return draft_by_copy(text, next, most).tokens;
}

TEST(CopyDraft, copies_what_followed) {
    EXPECT_THAT(draft({1, 2, 3, 4, 5, 9, 1, 2}, 3, 2), ElementsAre(4, 5));
}

TEST(CopyDraft, one_token_that_agrees_is_chance) {
    EXPECT_THAT(draft({7, 3, 4, 5, 8}, 3, 4), IsEmpty());
    EXPECT_THAT(draft({}, 3, 4), IsEmpty());
    EXPECT_THAT(draft({3}, 3, 0), IsEmpty());
}

TEST(CopyDraft, prefers_the_longer_agreement_and_then_the_later) {
    EXPECT_THAT(draft({1, 2, 3, 40, 9, 2, 3, 50, 1, 2}, 3, 1), ElementsAre(40));
    EXPECT_THAT(draft({2, 3, 40, 9, 2, 3, 50, 8, 2}, 3, 1), ElementsAre(50));
    EXPECT_EQ(draft_by_copy(Tokens{1, 2, 3, 40, 9, 1, 2}, 3, 1).matched, 3U);
}

TEST(CopyDraft, runs_on_into_itself) {
    EXPECT_THAT(draft({1, 2, 3, 1, 2}, 3, 7), ElementsAre(1, 2, 3, 1, 2, 3, 1));
    EXPECT_THAT(draft({5, 5}, 5, 3), ElementsAre(5, 5, 5));
}

TEST(CopyDraft, looks_no_further_than_enough) {
    const Tokens same(1000, 4);
    EXPECT_EQ(draft_by_copy(same, 4, 1).matched, copy_matched_enough);
}

}  // namespace
}  // namespace molly::engine
