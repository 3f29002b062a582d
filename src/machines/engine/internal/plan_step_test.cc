#include "engine/internal/plan_step.h"

#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace molly::engine {
namespace {

using testing::ElementsAre;

constexpr StepLimits limits{.tokens_max = 16, .chunk_max = 6};

std::vector<std::uint32_t> plan(std::vector<SequenceView> sequences) {
    return plan_step(sequences, limits);
}

TEST(PlanStep, gives_every_answer_one_token) {
    EXPECT_THAT(plan({{0, false}, {0, false}}), ElementsAre(1, 1));
}

TEST(PlanStep, skips_whoever_is_paused) {
    EXPECT_THAT(plan({{0, true}, {0, false}, {9, true}}), ElementsAre(0, 1, 0));
}

TEST(PlanStep, a_lone_prompt_takes_the_whole_step) {
    EXPECT_THAT(plan({{100, false}}), ElementsAre(16));
    EXPECT_THAT(plan({{10, false}}), ElementsAre(10));
}

TEST(PlanStep, a_long_prompt_is_chunked_beside_an_answer) {
    EXPECT_THAT(plan({{100, false}, {0, false}}), ElementsAre(6, 1));
}

TEST(PlanStep, prompts_share_fairly_and_leave_no_room_unused) {
    EXPECT_THAT(plan({{100, false}, {2, false}, {100, false}}), ElementsAre(7, 2, 7));
    EXPECT_THAT(plan({{3, false}, {0, false}, {100, false}}), ElementsAre(3, 1, 3));
}

TEST(PlanStep, nothing_to_do_is_an_empty_plan) {
    EXPECT_THAT(plan({}), ElementsAre());
    EXPECT_THAT(plan({{5, true}}), ElementsAre(0));
}

TEST(PlanStep, holds_for_many_shapes) {
    for (std::uint32_t seed = 0; seed < 2000; ++seed) {
        std::vector<SequenceView> sequences(1 + seed % 9);
        std::uint32_t state = seed;
        for (auto& sequence : sequences) {
            state = state * 1664525U + 1013904223U;
            sequence.prompt_left = (state >> 8U) % 40;
            sequence.paused = (state >> 20U) % 4 == 0;
        }
        const auto tokens = plan(sequences);
        std::uint32_t wanted = 0;
        bool answers = false;
        for (std::size_t i = 0; i < sequences.size(); ++i) {
            const auto& sequence = sequences[i];
            if (sequence.paused) {
                EXPECT_EQ(tokens[i], 0U);
                continue;
            }
            wanted += sequence.prompt_left;
            if (sequence.prompt_left == 0) {
                EXPECT_EQ(tokens[i], 1U);
                answers = true;
            }
            EXPECT_LE(tokens[i], std::max(1U, sequence.prompt_left));
        }
        const std::uint32_t sum = std::accumulate(tokens.begin(), tokens.end(), 0U);
        EXPECT_LE(sum, limits.tokens_max);
        if (wanted > 0 && !answers) {
            EXPECT_EQ(sum, std::min(wanted, limits.tokens_max));
        }
    }
}

}  // namespace
}  // namespace molly::engine
