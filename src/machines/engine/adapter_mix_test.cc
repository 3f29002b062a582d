// Several adapters on one request, each with its scale.
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/internal/test_adapter.h"
#include "engine/internal/test_merge.h"
#include "engine/internal/test_question.h"

namespace molly::engine {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): the cast of these tests

AdapterUse at(AdapterUse use, float scale) {
    use.scale = scale;
    return use;
}

class AdapterMixes : public ::testing::Test {
protected:
    /// Mixed ranks and subsets of layers; alpha over rank is a power of two, so that sums are exact
    /// in half precision.
    std::vector<AdapterUse> four() {
        std::vector<AdapterUse> adapters;
        constexpr std::int64_t ranks[] = {4, 8, 16, 32};
        for (std::uint32_t i = 0; i < 4; ++i) {
            TestAdapter wanted{.seed = 200 + i, .rank = ranks[i]};
            wanted.strength = 0.5F / std::pow(static_cast<float>(ranks[i]), 0.25F);
            if (i == 2) wanted.weights.resize(5);
            if (i == 3) wanted.weights.erase(wanted.weights.begin(), wanted.weights.begin() + 3);
            adapters.push_back(write_adapter(folder_, "m" + std::to_string(i), wanted));
        }
        return adapters;
    }

    TestFolder folder_;
};

// The plain reference: one adapter whose factors are those of all, side by side.
TEST_F(AdapterMixes, AreTheSumOfTheirDeltas) {
    const auto engine = open();
    const auto adapters = four();
    const std::vector<std::vector<AdapterUse>> mixes = {
        {adapters[0], adapters[1]},
        {at(adapters[0], 0.5F), at(adapters[2], -1)},
        {at(adapters[3], 0.25F), adapters[1], at(adapters[2], 2), at(adapters[0], 0.5F)}};
    std::vector<Question> questions;
    std::vector<Question> sums;
    for (const auto& mix : mixes) {
        questions.push_back(ask_all(mix));
        sums.push_back(ask(write_sum(folder_, "sum" + std::to_string(sums.size()), mix)));
    }
    const auto got = run(*engine, questions);
    const auto expected = run(*engine, sums);
    const auto base = run(*engine, {ask(std::nullopt)}).front();
    for (std::size_t i = 0; i < mixes.size(); ++i) {
        expect_alike(expected[i], got[i], "mix " + std::to_string(i));
        EXPECT_NE(got[i].text(), base.text());
    }
}

TEST_F(AdapterMixes, AgreeWithLlamasOwn) {
    const auto adapters = four();
    const std::vector<Question> questions = {
        ask_all({adapters[0], at(adapters[3], 0.5F)}), ask(adapters[1]),
        ask_all({adapters[0], at(adapters[3], 0.25F)}), ask(std::nullopt)};
    const auto expected = run(*open(in_turns()), questions);
    const auto got = run(*open(), questions);
    Limits limits;
    limits.adapter_route = AdapterRoute::stacked;
    const auto stacked = run(*open(limits), questions);
    constexpr float to_llama = 0.1F;  // it rounds the input of an f16 factor
    for (std::size_t i = 0; i < questions.size(); ++i) {
        expect_alike(expected[i], got[i], "question " + std::to_string(i), to_llama);
        expect_alike(expected[i], stacked[i], "stacked question " + std::to_string(i), to_llama);
    }
}

// To the last bit, whatever shares the batch and in whatever order they are named.
TEST_F(AdapterMixes, AreTheSameInAnyCompany) {
    Limits limits;
    limits.deterministic = true;
    const auto engine = open(limits);
    const auto adapters = four();
    const std::vector<Question> questions = {
        ask_all({adapters[0], at(adapters[1], 0.5F), adapters[2]}),
        ask_all({adapters[2], at(adapters[1], 0.5F), adapters[0]}), ask(adapters[2]),
        ask_all({adapters[3], adapters[1]}), ask(std::nullopt)};
    const auto together = run(*engine, questions);
    EXPECT_EQ(together[0].text(), together[1].text());
    for (std::size_t i = 0; i < questions.size(); ++i) {
        const auto alone = run(*engine, {questions[i]}).front();
        ASSERT_FALSE(alone.error) << alone.text();
        EXPECT_EQ(together[i].text(), alone.text());
        ASSERT_EQ(together[i].response.logprobs.size(), alone.response.logprobs.size());
        for (std::size_t k = 0; k < alone.response.logprobs.size(); ++k)
            EXPECT_EQ(together[i].response.logprobs[k].logprob, alone.response.logprobs[k].logprob);
    }
}

// A row of several adapters is one thread's, or two would add to it at once.
TEST_F(AdapterMixes, AreTheSameOnTwoThreads) {
    Limits limits;
    limits.threads = 2;
    const auto adapters = four();
    std::vector<Question> questions = {ask_all({adapters[0], at(adapters[1], 0.5F), adapters[2]}),
                                       ask_all({adapters[3], adapters[1]}), ask(adapters[0])};
    for (Question& question : questions)
        question.request.sampling.answer_tokens_max = 4;
    const auto one = run(*open(), questions);
    const auto two = run(*open(limits), questions);
    for (std::size_t i = 0; i < questions.size(); ++i)
        expect_alike(one[i], two[i], "question " + std::to_string(i));
}

TEST_F(AdapterMixes, OneNamedTwiceCountsTwice) {
    const auto engine = open();
    const auto adapters = four();
    const auto answers = run(*engine, {ask_all({at(adapters[0], 0.5F), at(adapters[0], 0.25F)}),
                                       ask(at(adapters[0], 0.75F))});
    expect_alike(answers[0], answers[1], "twice");
}

// Case 16: another strength of one of them starts cold.
TEST_F(AdapterMixes, NoPrefixPassesFromOneToAnother) {
    const auto engine = open();
    const auto adapters = four();
    std::string prefix;
    for (int i = 0; i < 60; ++i)
        prefix += "Una riga lunga e sempre uguale. ";
    const auto cached = [&](std::vector<AdapterUse> uses) {
        return run(*engine, {ask_all(std::move(uses), prefix)})
            .front()
            .response.usage.cached_tokens;
    };
    EXPECT_EQ(cached({adapters[0], adapters[1]}), 0U);
    EXPECT_GT(cached({adapters[1], adapters[0]}), 0U);
    EXPECT_EQ(cached({adapters[0], at(adapters[1], 0.5F)}), 0U);
    EXPECT_EQ(cached({adapters[0]}), 0U);
    EXPECT_EQ(cached({adapters[0], adapters[1], adapters[2]}), 0U);
}

// Mixes that together want more than there is wait for each other and never hold half.
TEST_F(AdapterMixes, WaitForRoomWithoutHoldingEachOtherUp) {
    const auto adapters = four();
    std::uint64_t all = 0;
    std::vector<Answer> solo;
    {
        const auto engine = open();
        for (std::size_t i = 0; i < 4; ++i)
            solo.push_back(
                run(*engine, {ask_all({adapters[i], at(adapters[(i + 1) % 4], 0.5F)})}).front());
        all = engine->adapters().bytes;
    }
    const auto engine = open(with_room(all * 3 / 4));
    std::vector<Question> questions;
    for (std::size_t i = 0; i < 48; ++i)
        questions.push_back(ask_all({adapters[i % 4], at(adapters[(i % 4 + 1) % 4], 0.5F)}));
    const auto answers = run(*engine, questions);
    for (std::size_t i = 0; i < answers.size(); ++i)
        expect_alike(solo[i % 4], answers[i], "request " + std::to_string(i));
    EXPECT_LE(engine->adapters().bytes, all * 3 / 4);
    const auto too_much = run(*engine, {ask_all(adapters)}).front();
    ASSERT_TRUE(too_much.error);
    EXPECT_EQ(too_much.error->code(), ErrorCode::exhausted);
    EXPECT_THAT(too_much.error->message(), ::testing::HasSubstr("MiB"));
}

}  // namespace
}  // namespace molly::engine
