#include "train/internal/merges.h"

#include <gtest/gtest.h>

namespace molly::train {
namespace {

using Ids = std::pair<std::int32_t, std::int32_t>;

TEST(Merges, the_most_frequent_pair_comes_first) {
    const auto learned = learn_merges({{"ab", 10}, {"abc", 5}, {"bc", 12}}, 258, {});
    ASSERT_EQ(learned.merges.size(), 2U);
    EXPECT_EQ(learned.merges[0], Ids('b', 'c'));  // 17 times
    EXPECT_EQ(learned.merges[1], Ids('a', 'b'));  // 10: within abc it is gone
    EXPECT_EQ(learned.bytes[256], "bc");
}

TEST(Merges, counts_follow_what_was_merged) {
    // After "ab" (9), the pair "ab" + "c" occurs 4 times and "c" + "d" 6 times.
    const auto learned = learn_merges({{"abc", 4}, {"ab", 5}, {"cd", 6}}, 259, {});
    ASSERT_EQ(learned.merges.size(), 3U);
    EXPECT_EQ(learned.merges[0], Ids('a', 'b'));
    EXPECT_EQ(learned.merges[1], Ids('c', 'd'));
    EXPECT_EQ(learned.merges[2], Ids(256, 'c'));
    EXPECT_EQ(learned.bytes[258], "abc");
}

TEST(Merges, a_pair_that_occurs_once_is_not_merged) {
    const auto learned = learn_merges({{"xyz", 1}, {"pq", 2}}, 400, {});
    ASSERT_EQ(learned.merges.size(), 1U);
    EXPECT_EQ(learned.merges[0], Ids('p', 'q'));
}

TEST(Merges, equal_counts_go_by_the_smaller_ids) {
    const auto learned = learn_merges({{"cd", 3}, {"ab", 3}}, 258, {});
    EXPECT_EQ(learned.merges[0], Ids('a', 'b'));
    EXPECT_EQ(learned.merges[1], Ids('c', 'd'));
}

TEST(Merges, runs_of_one_byte_merge_from_the_left) {
    const auto learned = learn_merges({{"aaaa", 5}}, 258, {});
    EXPECT_EQ(learned.bytes[256], "aa");
    EXPECT_EQ(learned.bytes[257], "aaaa");
}

}  // namespace
}  // namespace molly::train
