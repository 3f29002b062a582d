// One budget for keys and values, kept prefixes and adapters.
#include <chrono>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/internal/test_adapter.h"
#include "engine/internal/test_question.h"

namespace molly::engine {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): the cast of these tests
using ::testing::HasSubstr;

constexpr std::uint64_t kibibyte = 1024;

Limits with_memory(std::uint64_t bytes) {
    Limits limits;
    limits.memory_bytes_max = bytes;
    limits.inbox_jobs_max = 1000;
    limits.context_tokens_max = 1024;
    return limits;
}

Question long_question(std::size_t lines, std::string last,
                       std::optional<AdapterUse> adapter = {}) {
    std::string text;
    for (std::size_t i = 0; i < lines; ++i)
        text += "Una riga lunga e sempre uguale. ";
    return ask(std::move(adapter), text + last);
}

/// Bytes of one token's keys and values in the test model: two layers, 96 wide, f16.
constexpr std::uint64_t token_bytes = 2 * 2 * 96 * 2;

class Memory : public ::testing::Test {
protected:
    /// A place is free just after its answer ended.
    static MemoryState at_rest(const Engine& engine) {
        for (int i = 0; i < 400 && engine.load().running > 0; ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        return engine.memory();
    }
    AdapterUse adapter(std::uint32_t seed, std::int64_t rank = 16) {
        return write_adapter(folder_, "m" + std::to_string(seed), {.seed = seed, .rank = rank});
    }
    static Question wordy(std::optional<AdapterUse> adapter, std::size_t words) {
        std::string text = "Dimmi";
        for (std::size_t i = 0; i < words; ++i)
            text += " ancora";
        Question question = ask(std::move(adapter), std::move(text));
        question.request.sampling.answer_tokens_max = 100;
        return question;
    }
    TestFolder folder_;
};

TEST_F(Memory, KeysAndValuesLieInMemoryOnlyOnceTheyAreWritten) {
    const auto engine = open(with_memory(64 << 20U));
    const MemoryState before = engine->memory();
    ASSERT_TRUE(before.elastic);
    EXPECT_EQ(before.cache, 0U);
    // What lies between two places shares pages with both.
    EXPECT_LT(before.cache_resident, 128 * kibibyte);
    run(*engine, {long_question(40, "Fine.")});
    const MemoryState after = at_rest(*engine);
    EXPECT_GT(after.cache, 40 * token_bytes);
    EXPECT_EQ(after.cache, after.prefixes) << "nothing runs, so all of it keeps a prefix";
    EXPECT_GT(after.cache_resident, before.cache_resident + after.cache / 2);
}

TEST_F(Memory, PrefixesGiveTheirMemoryToAdapters) {
    // Room for the prefixes of two long prompts, but not for an adapter beside them.
    const auto engine = open(with_memory(900 * kibibyte));
    run(*engine, {long_question(60, "Uno.")});
    run(*engine, {long_question(60, "Due."), long_question(50, "Tre.")});
    const MemoryState full = at_rest(*engine);
    ASSERT_GT(full.prefixes, 500 * kibibyte);
    const auto answer = run(*engine, {ask(adapter(1, 64))}).front();
    ASSERT_FALSE(answer.error) << answer.error->message();
    const MemoryState after = at_rest(*engine);
    EXPECT_LT(after.prefixes, full.prefixes);
    EXPECT_LT(after.cache_resident, full.cache_resident) << "the system has got nothing back";
    EXPECT_LE(after.bytes, after.bytes_max);
}

TEST_F(Memory, AdaptersGiveTheirMemoryToPrompts) {
    const auto engine = open(with_memory(900 * kibibyte));
    run(*engine, {ask(adapter(2, 64))});
    ASSERT_EQ(engine->adapters().hot, 1U);
    const auto answers = run(
        *engine, {long_question(60, "Uno."), long_question(60, "Due."), long_question(60, "Tre.")});
    for (const Answer& answer : answers)
        ASSERT_FALSE(answer.error) << answer.error->message();
    EXPECT_EQ(engine->adapters().hot, 0U);
    EXPECT_EQ(engine->adapters().spare, 0U);
    EXPECT_LE(engine->memory().bytes, engine->memory().bytes_max);
}

// Whoever is parked goes on later, with the same answer.
TEST_F(Memory, ParkedRequestsGoOn) {
    std::vector<Question> questions;
    std::vector<Answer> alone;
    const auto law = adapter(3, 4);
    {
        const auto engine = open(with_memory(64 << 20U));
        for (std::size_t words = 1; words < 60 && questions.size() < 6; ++words) {
            Question question =
                wordy(questions.size() % 3 == 2 ? std::optional(law) : std::nullopt, words);
            Answer answer = run(*engine, {question}).front();
            if (!crosses(answer)) continue;
            questions.push_back(std::move(question));
            alone.push_back(std::move(answer));
        }
        ASSERT_FALSE(questions.empty());
        for (std::size_t i = 0; questions.size() < 24; ++i) {
            questions.push_back(questions[i]);
            alone.push_back(alone[i]);
        }
    }
    const auto engine = open(with_memory(350 * kibibyte));
    // Who arrives late finds room: how many meet depends on the machine.
    for (int round = 0; round < 10 && engine->memory().parked == 0; ++round) {
        const auto together = run(*engine, questions);
        EXPECT_LE(engine->memory().bytes, engine->memory().bytes_max);
        for (std::size_t i = 0; i < questions.size(); ++i) {
            expect_alike(alone[i], together[i], "question " + std::to_string(i));
            const domain::Usage& usage = together[i].response.usage;
            EXPECT_EQ(alone[i].response.usage.prompt_tokens, usage.prompt_tokens);
            EXPECT_EQ(alone[i].response.usage.answer_tokens, usage.answer_tokens);
        }
    }
    EXPECT_GT(engine->memory().parked, 0U) << "there was memory enough to prove nothing";
}

// Those that wait hold adapters, and ask for them again as soon as they have let them go.
TEST_F(Memory, WhoRunsTakesTheMemoryOfThoseWhoWait) {
    const auto own = adapter(5, 32);
    const auto other = adapter(6, 32);
    const auto third = adapter(7, 32);  // not in memory, so that its loader waits for room
    Question crossing;
    std::uint64_t both = 0;
    {
        const auto engine = open(with_memory(64 << 20U));
        for (std::size_t words = 1; words < 60; ++words) {
            crossing = wordy(own, words);
            if (crosses(run(*engine, {crossing}).front())) break;
            ASSERT_LT(words, 59U) << "no answer of the test model is long enough";
        }
        run(*engine, {ask(other)});
        both = engine->adapters().bytes;
    }
    // Both adapters and one block of keys and values, but not the second one.
    const auto engine = open(with_memory(both + 64 * token_bytes + 10 * kibibyte));
    for (int round = 0; round < 5; ++round) {
        run(*engine, {ask(other)});
        const std::vector<Question> together =
            round % 2 == 0 ? std::vector{crossing, ask(other), ask(other)}
                           : std::vector{crossing, ask(other), ask(third), ask(other), ask(third)};
        for (const Answer& answer : run(*engine, together))
            EXPECT_FALSE(answer.error) << answer.error->message();
    }
}

TEST_F(Memory, WhatCanNeverFitIsRefusedWithNumbers) {
    const auto engine = open(with_memory(200 * kibibyte));
    const auto answers = run(*engine, {long_question(64, "Fine."), ask(std::nullopt)});
    ASSERT_TRUE(answers[0].error);
    EXPECT_EQ(answers[0].error->code(), ErrorCode::exhausted);
    EXPECT_THAT(answers[0].error->message(), HasSubstr("engine.memory_mib"));
    EXPECT_FALSE(answers[1].error);
    const auto adapted = run(*engine, {ask(adapter(4, 128))}).front();
    ASSERT_TRUE(adapted.error);
    EXPECT_EQ(adapted.error->code(), ErrorCode::exhausted);
    EXPECT_THAT(adapted.error->message(), HasSubstr("MiB"));
}

TEST_F(Memory, NobodyIsParkedWhereTheLastBitCounts) {
    Limits limits = with_memory(600 * kibibyte);
    limits.deterministic = true;
    const auto engine = open(limits);
    std::vector<Question> questions;
    for (std::size_t i = 0; i < 8; ++i)
        questions.push_back(ask(std::nullopt, "Dimmi " + std::to_string(i)));
    const auto together = run(*engine, questions);
    EXPECT_EQ(engine->memory().parked, 0U);
    for (std::size_t i = 0; i < questions.size(); ++i) {
        const auto alone = run(*engine, {questions[i]}).front();
        ASSERT_EQ(alone.response.logprobs.size(), together[i].response.logprobs.size());
        for (std::size_t k = 0; k < alone.response.logprobs.size(); ++k)
            EXPECT_EQ(alone.response.logprobs[k].logprob, together[i].response.logprobs[k].logprob);
    }
}

}  // namespace
}  // namespace molly::engine
