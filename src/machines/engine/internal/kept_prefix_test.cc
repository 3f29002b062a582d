#include "engine/internal/kept_prefix.h"

#include <numeric>

#include <gtest/gtest.h>

namespace molly::engine {
namespace {

std::vector<llama_token> text(std::size_t length, llama_token first = 0) {
    std::vector<llama_token> tokens(length);
    std::iota(tokens.begin(), tokens.end(), first);
    return tokens;
}

const std::vector<std::size_t> all = {0, 1, 2};

TEST(KeptPrefix, TakesTheLongestCommonBeginning) {
    const std::string key = prefix_key("", 1, "anna");
    const std::vector<KeptPrefix> kept = {
        {key, text(100), 1}, {key, text(300), 2}, {key, text(300, 7), 3}};
    const auto choice = choose_place(kept, all, key, text(400));
    EXPECT_EQ(choice.place, 1U);
    EXPECT_EQ(choice.reused, 256U);
}

TEST(KeptPrefix, TheLastTokenIsAlwaysComputed) {
    const std::string key = prefix_key("", 1, "anna");
    const std::vector<KeptPrefix> kept = {{key, text(128), 1}};
    const std::vector<std::size_t> free = {0};
    EXPECT_EQ(choose_place(kept, free, key, text(128)).reused, 64U);
    EXPECT_EQ(choose_place(kept, free, key, text(129)).reused, 128U);
    EXPECT_EQ(choose_place(kept, free, key, text(1)).reused, 0U);
}

// Case 16: another adapter, another scale, another member: nothing is shared.
TEST(KeptPrefix, NeverCrossesKeys) {
    const std::vector<std::string> keys = {
        prefix_key("", 1, "anna"),      prefix_key("aa", 1, "anna"),  prefix_key("bb", 1, "anna"),
        prefix_key("aa", 0.5F, "anna"), prefix_key("aa", 1, "bruno"), prefix_key("", 1, "bruno")};
    for (const std::string& kept_key : keys) {
        for (const std::string& key : keys) {
            const std::vector<KeptPrefix> kept = {{kept_key, text(200), 1}};
            const std::vector<std::size_t> free = {0};
            EXPECT_EQ(choose_place(kept, free, key, text(200)).reused, kept_key == key ? 192U : 0U);
        }
    }
}

TEST(KeptPrefix, GivesUpWhatWasUsedLongestAgo) {
    const std::string key = prefix_key("", 1, "anna");
    const std::vector<KeptPrefix> kept = {
        {key, text(100), 5}, {key, text(100), 3}, {key, text(100), 9}};
    EXPECT_EQ(choose_place(kept, all, key, text(100, 50)).place, 1U);
    const std::vector<std::size_t> others = {0, 2};
    EXPECT_EQ(choose_place(kept, others, key, text(100, 50)).place, 0U);
}

}  // namespace
}  // namespace molly::engine
