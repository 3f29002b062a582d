#include "engine/internal/plan_step.h"

#include <algorithm>
#include <deque>
#include <numeric>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace molly::engine {
namespace {

using testing::ElementsAre;

constexpr StepLimits limits{.tokens_max = 16, .chunk_max = 6, .block = 8};

std::vector<std::uint32_t> plan(std::vector<SequenceView> sequences) {
    return plan_step(sequences, limits).tokens;
}

TEST(PlanStep, gives_every_answer_one_token) {
    EXPECT_THAT(plan({{.prompt_left = 0}, {.prompt_left = 0}}), ElementsAre(1, 1));
}

TEST(PlanStep, skips_whoever_is_paused) {
    EXPECT_THAT(plan({{.prompt_left = 0, .paused = true},
                      {.prompt_left = 0},
                      {.prompt_left = 9, .paused = true}}),
                ElementsAre(0, 1, 0));
}

TEST(PlanStep, a_lone_prompt_takes_the_whole_step) {
    EXPECT_THAT(plan({{.prompt_left = 100}}), ElementsAre(16));
    EXPECT_THAT(plan({{.prompt_left = 10}}), ElementsAre(10));
}

TEST(PlanStep, a_long_prompt_is_chunked_beside_an_answer) {
    EXPECT_THAT(plan({{.prompt_left = 100}, {.prompt_left = 0}}), ElementsAre(6, 1));
}

TEST(PlanStep, prompts_share_fairly_and_leave_no_room_unused) {
    EXPECT_THAT(plan({{.prompt_left = 100}, {.prompt_left = 2}, {.prompt_left = 100}}),
                ElementsAre(7, 2, 7));
    EXPECT_THAT(plan({{.prompt_left = 3}, {.prompt_left = 0}, {.prompt_left = 100}}),
                ElementsAre(3, 1, 3));
}

TEST(PlanStep, nothing_to_do_is_an_empty_plan) {
    EXPECT_THAT(plan({}), ElementsAre());
    EXPECT_THAT(plan({{.prompt_left = 5, .paused = true}}), ElementsAre(0));
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

constexpr std::uint32_t block = 8;

StepLimits with_cells(std::uint32_t cells) {
    return {.tokens_max = 16, .chunk_max = 6, .cells_free = cells, .block = block};
}

TEST(PlanStep, a_prompt_takes_no_more_than_there_is_memory_for) {
    const std::vector<SequenceView> sequences = {{.prompt_left = 100, .held = 4, .owned = 8},
                                                 {.prompt_left = 0, .held = 8, .owned = 8}};
    EXPECT_THAT(plan_step(sequences, with_cells(8)).tokens, ElementsAre(4, 1));
    EXPECT_THAT(plan_step(sequences, with_cells(16)).tokens, ElementsAre(6, 1));
    EXPECT_TRUE(plan_step(sequences, with_cells(8)).park.empty());
}

TEST(PlanStep, without_a_limit_memory_is_no_matter) {
    for (std::uint32_t held = 0; held < 20; ++held) {
        const std::vector<SequenceView> sequences = {
            {.prompt_left = 100, .held = held, .owned = 16}};
        EXPECT_THAT(plan_step(sequences, limits).tokens, ElementsAre(16)) << held;
    }
}

TEST(PlanStep, whoever_loses_least_is_parked_for_the_others) {
    const std::vector<SequenceView> sequences = {
        {.held = 40, .owned = 40}, {.held = 8, .owned = 8}, {.held = 16, .owned = 16}};
    const StepPlan plan = plan_step(sequences, with_cells(0));
    EXPECT_THAT(plan.park, ElementsAre(1, 2));
    EXPECT_THAT(plan.tokens, ElementsAre(1, 0, 0));
    const StepPlan room_for_one = plan_step(sequences, with_cells(8));
    EXPECT_THAT(room_for_one.park, ElementsAre(1));
    EXPECT_THAT(room_for_one.tokens, ElementsAre(1, 0, 1));
}

TEST(PlanStep, who_waits_for_a_reader_gives_its_memory_too) {
    const std::vector<SequenceView> sequences = {{.paused = true, .held = 80, .owned = 80},
                                                 {.held = 8, .owned = 8}};
    const StepPlan plan = plan_step(sequences, with_cells(0));
    EXPECT_THAT(plan.park, ElementsAre(0));
    EXPECT_THAT(plan.tokens, ElementsAre(0, 1));
}

TEST(PlanStep, nobody_is_parked_where_that_is_forbidden) {
    StepLimits limits_here = with_cells(0);
    limits_here.may_park = false;
    const std::vector<SequenceView> sequences = {{.held = 40, .owned = 40},
                                                 {.held = 7, .owned = 8}};
    const StepPlan plan = plan_step(sequences, limits_here);
    EXPECT_TRUE(plan.park.empty());
    EXPECT_THAT(plan.tokens, ElementsAre(0, 1));
}

std::uint32_t below(std::uint32_t limit, std::mt19937& random) {
    return static_cast<std::uint32_t>(random() % limit);
}

/// Random sequences, some of them with less memory than they need next.
std::vector<SequenceView> random_sequences(std::mt19937& random) {
    std::vector<SequenceView> sequences(1 + random() % 9);
    for (SequenceView& sequence : sequences) {
        sequence.prompt_left = below(3, random) == 0 ? below(40, random) : 0;
        sequence.paused = random() % 5 == 0;
        sequence.held = below(60, random);
        sequence.owned = in_blocks(sequence.held, block) + (random() % 3 == 0 ? block : 0);
    }
    return sequences;
}

TEST(PlanStep, no_step_is_over_its_budget) {
    std::mt19937 random(1);
    for (int turn = 0; turn < 20'000; ++turn) {
        const auto sequences = random_sequences(random);
        const auto cells = below(6, random) * block;
        const StepPlan plan = plan_step(sequences, with_cells(cells));
        std::uint32_t room = cells;
        for (const std::size_t parked : plan.park) {
            EXPECT_EQ(plan.tokens[parked], 0U);
            room += sequences[parked].owned;
        }
        std::uint32_t added = 0;
        bool may_run = false;
        for (std::size_t i = 0; i < sequences.size(); ++i) {
            added += cells_missing(sequences[i], plan.tokens[i], block);
            may_run = may_run || !sequences[i].paused;
        }
        ASSERT_LE(added, room) << turn;
        const std::uint32_t sum = std::accumulate(plan.tokens.begin(), plan.tokens.end(), 0U);
        ASSERT_LE(sum, 16U);
        // Somebody goes on, unless one alone has to get more than there is in all.
        if (may_run && plan.park.size() + 1 < sequences.size()) {
            ASSERT_GT(sum, 0U) << turn;
        }
    }
}

TEST(PlanStep, whoever_has_most_goes_on) {
    std::mt19937 random(2);
    for (int turn = 0; turn < 20'000; ++turn) {
        const auto sequences = random_sequences(random);
        const StepPlan plan = plan_step(sequences, with_cells(below(3, random) * block));
        std::uint32_t most = 0;
        for (const SequenceView& sequence : sequences)
            if (!sequence.paused) most = std::max(most, sequence.held);
        for (std::size_t i = 0; i < plan.park.size(); ++i) {
            const SequenceView& parked = sequences[plan.park[i]];
            const bool others = std::ranges::any_of(sequences, [&](const SequenceView& other) {
                return &other != &parked && !other.paused && other.held == parked.held;
            });
            ASSERT_TRUE(parked.paused || parked.held < most || others) << turn;
            if (i > 0) {
                ASSERT_GE(parked.held, sequences[plan.park[i - 1]].held) << turn;
            }
        }
    }
}

/// A whole engine's life in a budget: requests come, prompts are read, answers grow, some are
/// parked and come back when there is room.
struct World {
    struct Request {
        SequenceView view;
        std::uint32_t prompt = 0;
        std::uint32_t answer = 0;  // still to come
        std::uint32_t waited = 0;  // steps since it came
        bool running = false;
    };
    std::deque<Request> requests;
    std::uint32_t cells = 0;  // free
    std::uint32_t longest_wait = 0;
    std::uint32_t ended = 0;

    void admit() {
        auto running = std::ranges::count(requests, true, &Request::running);
        for (Request& request : requests) {
            if (request.running) continue;
            const std::uint32_t wanted = in_blocks(request.prompt + 1, block);
            if (running >= 4 || wanted > cells) return;
            cells -= wanted;
            request.view = {.prompt_left = request.prompt, .held = 0, .owned = wanted};
            request.running = true;
            ++running;
        }
    }
    void step() {
        admit();
        std::vector<SequenceView> views;
        std::vector<Request*> who;
        for (Request& request : requests) {
            ++request.waited;
            if (!request.running) continue;
            views.push_back(request.view);
            who.push_back(&request);
        }
        const StepPlan plan = plan_step(views, with_cells(cells));
        for (const std::size_t i : plan.park) {
            cells += who[i]->view.owned;
            who[i]->prompt = std::max(who[i]->prompt, who[i]->view.held + 1);
            who[i]->running = false;
        }
        for (std::size_t i = 0; i < who.size(); ++i) {
            if (!who[i]->running || plan.tokens[i] == 0) continue;
            SequenceView& view = who[i]->view;
            const std::uint32_t more = cells_missing(view, plan.tokens[i], block);
            ASSERT_LE(more, cells);
            cells -= more;
            view.owned += more;
            view.held += plan.tokens[i];
            view.prompt_left -= std::min(view.prompt_left, plan.tokens[i]);
            if (view.prompt_left == 0 && who[i]->answer > 0) --who[i]->answer;
        }
        for (auto request = requests.begin(); request != requests.end();) {
            if (request->running && request->answer == 0 && request->view.prompt_left == 0) {
                cells += request->view.owned;
                longest_wait = std::max(longest_wait, request->waited);
                ++ended;
                request = requests.erase(request);
            } else {
                ++request;
            }
        }
    }
};

TEST(PlanStep, a_simulated_load_comes_to_its_end_without_starving_anybody) {
    std::mt19937 random(3);
    for (int world_number = 0; world_number < 200; ++world_number) {
        World world;
        constexpr std::uint32_t all = 12 * block;
        world.cells = all;
        std::uint32_t came = 0;
        for (int turn = 0; turn < 4000; ++turn) {
            if (came < 60 && random() % 6 == 0) {
                World::Request request;
                request.prompt = 1 + below(40, random);
                request.answer = 1 + below(40, random);
                world.requests.push_back(request);
                ++came;
            }
            world.step();
        }
        ASSERT_EQ(world.ended, 60U) << world_number;
        ASSERT_EQ(world.cells, all) << "memory was lost";
        ASSERT_LT(world.longest_wait, 1500U) << world_number;
    }
}

}  // namespace
}  // namespace molly::engine
