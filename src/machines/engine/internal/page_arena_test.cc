#include "engine/internal/page_arena.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace molly::engine {
namespace {

constexpr std::size_t page = PageArena::small_page;

std::shared_ptr<PageArena> arena_of(std::size_t pages, std::size_t size = page) {
    auto arena = PageArena::make(pages * size, size);
    EXPECT_TRUE(arena);
    return *std::move(arena);
}

TEST(PageArena, APageThatComesBackIsUsedAgain) {
    const auto arena = arena_of(8);
    const std::byte* first = nullptr;
    {
        const auto run = arena->take(3 * page, 3 * page);
        ASSERT_TRUE(run);
        first = run->start();
        std::memset(run->start(), 7, run->bytes());
    }
    EXPECT_EQ(arena->used(), 0U);
    EXPECT_EQ(arena->ready(), 3 * page);
    const auto again = arena->take(1, page);
    ASSERT_TRUE(again);
    EXPECT_EQ(again->start(), first);
    EXPECT_EQ(arena->resident(), 3 * page);
}

TEST(PageArena, FreeMemoryGoesBackToTheSystem) {
    const auto arena = arena_of(8);
    arena->prepare(6 * page);
    EXPECT_EQ(arena->ready(), 6 * page);
    EXPECT_EQ(arena->resident(), 6 * page);
    EXPECT_EQ(arena->trim(2 * page), 4 * page);
    EXPECT_EQ(arena->resident(), 2 * page);
    arena->prepare(2 * page);
    EXPECT_EQ(arena->resident(), 2 * page);
}

TEST(PageArena, HugePagesComeAndGoWhole) {
    const auto arena = arena_of(4, PageArena::huge_page);
    arena->prepare(3 * PageArena::huge_page);
    EXPECT_EQ(arena->resident(), 3 * PageArena::huge_page);
    EXPECT_EQ(arena->trim(PageArena::huge_page), 2 * PageArena::huge_page);
    EXPECT_EQ(arena->resident(), PageArena::huge_page);
}

TEST(PageArena, FreshPagesTakeThePlaceOfFreeOnesElsewhere) {
    const auto arena = arena_of(4);
    std::vector<PageRun> single;
    for (int i = 0; i < 4; ++i) {
        single.push_back(*arena->take(page, page));
        std::memset(single.back().start(), 1, page);
    }
    single.erase(single.begin() + 2);
    single.erase(single.begin());  // two free pages, not side by side
    const auto pair = arena->take(2 * page, 2 * page);
    ASSERT_TRUE(pair);
    std::memset(pair->start(), 2, pair->bytes());
    EXPECT_EQ(arena->ready(), 0U);
    EXPECT_EQ(arena->resident(), 4 * page);
}

TEST(PageArena, NeverHasMoreInMemoryThanIsAllowed) {
    const auto arena = arena_of(16);
    std::vector<PageRun> single;
    for (int i = 0; i < 4; ++i) {
        single.push_back(*arena->take(page, page));
        std::memset(single.back().start(), 1, page);
    }
    single.erase(single.begin() + 2);
    single.erase(single.begin());  // two free pages, not side by side
    arena->allow(4 * page);
    const auto three = arena->take(3 * page, 3 * page);
    ASSERT_FALSE(three);
    EXPECT_EQ(three.error().code(), ErrorCode::exhausted);
    EXPECT_EQ(arena->ready(), 2 * page);
    const auto two = arena->take(2 * page, 2 * page);
    ASSERT_TRUE(two);
    std::memset(two->start(), 2, two->bytes());
    EXPECT_EQ(arena->resident(), 4 * page);
    arena->prepare(page);
    EXPECT_EQ(arena->ready(), 0U);
}

TEST(PageArena, GivesWhatLiesInMemoryBeforeAskingForMore) {
    const auto arena = arena_of(16);
    arena->prepare(2 * page);
    const auto run = arena->take(page, 8 * page);
    ASSERT_TRUE(run);
    EXPECT_EQ(run->bytes(), 2 * page);
}

TEST(PageArena, WhatIsTooLargeIsRefusedWithNumbers) {
    const auto arena = arena_of(4);
    const auto run = arena->take(page << 20U, page << 20U);
    ASSERT_FALSE(run);
    EXPECT_EQ(run.error().code(), ErrorCode::exhausted);
    EXPECT_NE(run.error().message().find("MiB"), std::string::npos);
}

// Whatever comes and goes: pieces never overlap, nothing is lost, and no more than the arena's size
// lies in memory.
TEST(PageArena, HoldsUnderAnyOrderOfTakingAndGiving) {
    std::mt19937 random(3);
    const auto arena = arena_of(24);
    std::vector<std::pair<PageRun, int>> held;
    int mark = 0;
    for (int turn = 0; turn < 3000; ++turn) {
        const std::size_t wanted = 1 + random() % 6;
        if (random() % 2 == 0 && arena->used() + wanted * page <= 24 * page) {
            auto run = arena->take(wanted * page, wanted * page);
            ASSERT_TRUE(run);
            std::memset(run->start(), ++mark & 0xFF, run->bytes());
            held.emplace_back(*std::move(run), mark & 0xFF);
        } else if (!held.empty()) {
            const std::size_t at = random() % held.size();
            const auto& [run, value] = held[at];
            ASSERT_TRUE(std::all_of(run.start(), run.start() + run.bytes(), [&](std::byte one) {
                return std::to_integer<int>(one) == value;
            }));
            held.erase(held.begin() + static_cast<std::ptrdiff_t>(at));
        }
        if (random() % 50 == 0) arena->prepare(random() % 8 * page);
        if (random() % 50 == 0) arena->trim(random() % 8 * page);
        std::size_t bytes = 0;
        for (const auto& [run, value] : held)
            bytes += run.bytes();
        ASSERT_EQ(arena->used(), bytes);
        ASSERT_LE(arena->used() + arena->ready(), 24 * page);
        if (turn % 100 == 0) {
            ASSERT_EQ(arena->resident(), arena->used() + arena->ready());
        }
    }
}

TEST(PageArena, ManyThreadsTakeAndGive) {
    const auto arena = arena_of(64);
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; ++thread)
        threads.emplace_back([&arena, thread] {
            for (int i = 0; i < 500; ++i) {
                const auto run = arena->take(page, 4 * page);
                ASSERT_TRUE(run);
                std::memset(run->start(), thread, run->bytes());
                ASSERT_EQ(std::to_integer<int>(run->start()[run->bytes() - 1]), thread);
                if (i % 16 == 0) arena->prepare(8 * page);
            }
        });
    for (auto& thread : threads)
        thread.join();
    EXPECT_EQ(arena->used(), 0U);
}

}  // namespace
}  // namespace molly::engine
