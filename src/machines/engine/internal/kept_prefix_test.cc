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

std::string key_of(const std::string& hash, float scale, const std::string& member) {
    std::vector<ScaledHash> adapters;
    if (!hash.empty()) adapters.push_back({hash, scale});
    return prefix_key(adapters, member);
}

const std::vector<std::size_t> all = {0, 1, 2};

TEST(KeptPrefix, TakesTheLongestCommonBeginning) {
    const std::string key = key_of("", 1, "anna");
    const std::vector<KeptPrefix> kept = {
        {key, text(100), 1}, {key, text(300), 2}, {key, text(300, 7), 3}};
    const auto choice = choose_place(kept, all, key, text(400));
    EXPECT_EQ(choice.place, 1U);
    EXPECT_EQ(choice.reused, 256U);
}

TEST(KeptPrefix, TheLastTokenIsAlwaysComputed) {
    const std::string key = key_of("", 1, "anna");
    const std::vector<KeptPrefix> kept = {{key, text(128), 1}};
    const std::vector<std::size_t> free = {0};
    EXPECT_EQ(choose_place(kept, free, key, text(128)).reused, 64U);
    EXPECT_EQ(choose_place(kept, free, key, text(129)).reused, 128U);
    EXPECT_EQ(choose_place(kept, free, key, text(1)).reused, 0U);
}

// Case 16: another adapter, another scale, another member: nothing is shared.
TEST(KeptPrefix, NeverCrossesKeys) {
    const std::vector<std::string> keys = {
        key_of("", 1, "anna"),
        key_of("aa", 1, "anna"),
        key_of("bb", 1, "anna"),
        key_of("aa", 0.5F, "anna"),
        key_of("aa", 1, "bruno"),
        key_of("", 1, "bruno"),
        prefix_key(std::vector<ScaledHash>{{"aa", 1}, {"bb", 1}}, "anna")};
    for (const std::string& kept_key : keys) {
        for (const std::string& key : keys) {
            const std::vector<KeptPrefix> kept = {{kept_key, text(200), 1}};
            const std::vector<std::size_t> free = {0};
            EXPECT_EQ(choose_place(kept, free, key, text(200)).reused, kept_key == key ? 192U : 0U);
        }
    }
}

TEST(KeptPrefix, GivesUpWhatWasUsedLongestAgo) {
    const std::string key = key_of("", 1, "anna");
    const std::vector<KeptPrefix> kept = {
        {key, text(100), 5}, {key, text(100), 3}, {key, text(100), 9}};
    EXPECT_EQ(choose_place(kept, all, key, text(100, 50)).place, 1U);
    const std::vector<std::size_t> others = {0, 2};
    EXPECT_EQ(choose_place(kept, others, key, text(100, 50)).place, 0U);
}

}  // namespace
}  // namespace molly::engine
