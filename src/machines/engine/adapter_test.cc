#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/engine.h"
#include "engine/internal/test_adapter.h"
#include "engine/internal/test_question.h"

namespace molly::engine {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

using namespace testing;  // NOLINT(google-build-using-namespace): the cast of these tests

class Adapters : public ::testing::Test {
protected:
    /// Mixed ranks, types and subsets of layers.
    std::vector<AdapterUse> eight() {
        std::vector<AdapterUse> adapters;
        constexpr std::int64_t ranks[] = {1, 4, 5, 8, 16, 32, 64, 8};
        for (std::uint32_t i = 0; i < 8; ++i) {
            TestAdapter wanted{.seed = 100 + i, .rank = ranks[i]};
            wanted.strength = 0.5F / std::pow(static_cast<float>(ranks[i]), 0.25F);
            if (i == 2) wanted.type = GGML_TYPE_F32;
            if (i == 5) wanted.weights.resize(3);
            if (i == 6) wanted.weights = {wanted.weights.back()};
            adapters.push_back(write_adapter(folder_, "a" + std::to_string(i), wanted));
        }
        return adapters;
    }

    TestFolder folder_;
};

TEST_F(Adapters, TheSeamIsAlive) {
    const auto engine = open();
    const AdapterMemory memory = engine->adapters();
    EXPECT_TRUE(memory.together);
    EXPECT_EQ(memory.layers, 15U);  // seven in each of two layers, and the head
    EXPECT_EQ(memory.hot, 0U);
    EXPECT_GT(memory.bytes_max, 0U);
}

TEST_F(Adapters, EightTogetherAnswerAsEachAlone) {
    const auto engine = open();
    const auto adapters = eight();
    std::vector<Question> questions;
    for (const auto& adapter : adapters)
        questions.push_back(ask(adapter));
    const auto together = run(*engine, questions);
    std::set<std::string> texts;
    for (std::size_t i = 0; i < questions.size(); ++i) {
        const auto alone = run(*engine, {questions[i]}).front();
        expect_alike(alone, together[i], "adapter " + std::to_string(i));
        texts.insert(alone.text());
    }
    texts.insert(run(*engine, {ask(std::nullopt)}).front().text());
    EXPECT_GE(texts.size(), 6U) << "the adapters change too little to prove anything";
    EXPECT_EQ(engine->adapters().hot, 8U);
    EXPECT_EQ(engine->adapters().loads, 8U);
}

// The deterministic mode: not alike, the same to the last bit, alone and in any company.
TEST_F(Adapters, TheSameInAnyBatchWhenAsked) {
    Limits limits;
    limits.deterministic = true;
    const auto engine = open(limits);
    const auto adapters = eight();
    std::vector<Question> questions = {ask(std::nullopt, "Uno.")};
    for (const auto& adapter : adapters)
        questions.push_back(ask(adapter, questions.size() % 2 == 0 ? "Due e tre." : "Quattro?"));
    std::vector<Answer> alone;
    for (const Question& question : questions)
        alone.push_back(run(*engine, {question}).front());
    for (const std::size_t company : {2U, 3U, 5U, 8U, 9U}) {
        const auto together = run(
            *engine, {questions.begin(), questions.begin() + static_cast<std::ptrdiff_t>(company)});
        for (std::size_t i = 0; i < company; ++i) {
            EXPECT_EQ(together[i].text(), alone[i].text()) << i << " of " << company;
            ASSERT_EQ(together[i].response.logprobs.size(), alone[i].response.logprobs.size());
            for (std::size_t k = 0; k < alone[i].response.logprobs.size(); ++k)
                EXPECT_EQ(together[i].response.logprobs[k].logprob,
                          alone[i].response.logprobs[k].logprob)
                    << i << " of " << company << " token " << k;
        }
    }
}

TEST_F(Adapters, AgreeWithLlamasOwn) {
    const auto ours = open();
    const auto theirs = open(in_turns());
    EXPECT_FALSE(theirs->adapters().together);
    std::vector<Question> questions = {ask(std::nullopt)};
    for (const auto& adapter : eight())
        questions.push_back(ask(adapter));
    const auto expected = run(*theirs, questions);
    const auto got = run(*ours, questions);
    // llama.cpp rounds the input of an f16 factor to half precision, ours stays in single.
    constexpr float to_llama = 0.1F;
    for (std::size_t i = 0; i < questions.size(); ++i)
        expect_alike(expected[i], got[i], "question " + std::to_string(i), to_llama);
}

// The route for weights on a GPU, on the backend that is here.
TEST_F(Adapters, AgreeThroughGgmlsOwnOperations) {
    const auto ours = open();
    Limits limits;
    limits.adapter_route = AdapterRoute::stacked;
    const auto stacked = open(limits);
    EXPECT_TRUE(stacked->adapters().together);
    EXPECT_EQ(stacked->adapters().kernel, "mul_mat_id");
    std::vector<Question> questions = {ask(std::nullopt)};
    for (const auto& adapter : eight()) {
        questions.push_back(ask(adapter));
        questions.back().adapters.front().scale = questions.size() % 2 == 0 ? 1.0F : 0.5F;
    }
    const auto expected = run(*ours, questions);
    // One first, so that the stack grows in rank and places; then all, twice.
    constexpr float to_llama = 0.1F;
    expect_alike(expected[1], run(*stacked, {questions[1]}).front(), "first", to_llama);
    for (int round = 0; round < 2; ++round) {
        const auto got = run(*stacked, questions);
        for (std::size_t i = 0; i < questions.size(); ++i)
            expect_alike(expected[i], got[i], "question " + std::to_string(i), to_llama);
    }
}

TEST_F(Adapters, BytesAreNearlyTheSameAdapterInHalfTheMemory) {
    Limits limits;
    limits.adapter_numbers = AdapterNumbers::int8;
    const auto halves = open();
    const auto bytes = open(limits);
    std::vector<Question> questions;
    for (std::uint32_t i = 0; i < 4; ++i)
        questions.push_back(
            ask(write_adapter(folder_, "b" + std::to_string(i), {.seed = 40 + i, .rank = 64})));
    const auto expected = run(*halves, questions);
    const auto got = run(*bytes, questions);
    // Half a 127th of the largest number of a row, in two factors of 15 layers: random adapters
    // that change every layer by as much as its weights are the worst case.
    constexpr float to_halves = 0.4F;
    bool other = false;
    for (std::size_t i = 0; i < questions.size(); ++i) {
        expect_alike(expected[i], got[i], "question " + std::to_string(i), to_halves);
        other = other || expected[i].response.logprobs.front().logprob !=
                             got[i].response.logprobs.front().logprob;
    }
    EXPECT_TRUE(other) << "the numbers are the same: were they kept as bytes?";
    EXPECT_LT(bytes->adapters().bytes, halves->adapters().bytes * 6 / 10);
}

TEST_F(Adapters, EveryTypeOfNumberIsTheSameAdapter) {
    const auto engine = open();
    std::vector<Question> questions;
    for (const ggml_type type : {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16})
        questions.push_back(ask(
            write_adapter(folder_, ggml_type_name(type), {.seed = 3, .rank = 6, .type = type})));
    const auto answers = run(*engine, questions);
    expect_alike(answers[0], answers[1], "f16");
    expect_alike(answers[0], answers[2], "bf16");
}

TEST_F(Adapters, TheBaseBesideThemStaysTheBase) {
    const auto engine = open();
    const auto adapters = eight();
    const auto alone = run(*engine, {ask(std::nullopt)}).front();
    const auto beside = run(*engine, {ask(adapters[4]), ask(std::nullopt), ask(adapters[1])});
    expect_alike(alone, beside[1], "the base");
    EXPECT_NE(beside[0].text(), beside[1].text());
}

TEST_F(Adapters, EachRequestHasItsScale) {
    const auto engine = open();
    AdapterUse full = write_adapter(folder_, "full", {.seed = 5});
    AdapterUse none = full;
    none.scale = 0;
    AdapterUse half = full;
    half.scale = 0.5F;
    const AdapterUse half_alpha = write_adapter(folder_, "half", {.seed = 5, .alpha = 8});
    const auto answers =
        run(*engine, {ask(full), ask(none), ask(half), ask(half_alpha), ask(std::nullopt)});
    expect_alike(answers[1], answers[4], "scale 0");
    expect_alike(answers[2], answers[3], "scale 0.5");
    EXPECT_NE(answers[0].text(), answers[4].text());
}

// Case 15: what does not fit is refused by name, and the base is not served in its stead.
TEST_F(Adapters, NameTheTensorThatDoesNotFit) {
    const auto engine = open();
    const auto refusal = [&](const std::string& name, std::vector<TestWeight> weights) {
        const auto use = write_adapter(folder_, name, {.weights = std::move(weights)});
        const auto answer = run(*engine, {ask(use)}).front();
        return answer.error ? answer.error->message() : "it was served";
    };
    EXPECT_THAT(refusal("prefixed", {{"model.blk.0.attn_q.weight", 96, 96}}),
                HasSubstr("model.blk.0.attn_q.weight.lora_a"));
    EXPECT_THAT(refusal("wide", {{"blk.0.attn_q.weight", 112, 96}}),
                HasSubstr("blk.0.attn_q.weight"));
    EXPECT_THAT(refusal("embedding", {{"token_embd.weight", 96, 96}}),
                HasSubstr("token_embd.weight"));
    AdapterUse cut = write_adapter(folder_, "cut", {});
    fs::resize_file(cut.file, fs::file_size(cut.file) / 2);
    EXPECT_TRUE(run(*engine, {ask(cut)}).front().error);
    AdapterUse gone = cut;
    fs::remove(gone.file);
    const auto answer = run(*engine, {ask(gone)}).front();
    ASSERT_TRUE(answer.error);
    EXPECT_EQ(answer.error->code(), ErrorCode::not_found);
    EXPECT_EQ(engine->adapters().bytes, 0U);
}

// Case 16: the same prefix under another adapter starts cold.
TEST_F(Adapters, NothingOfOneAdapterReachesTheNext) {
    const auto engine = open();
    const auto adapters = eight();
    std::string prefix;
    for (int i = 0; i < 120; ++i)
        prefix += "Una riga lunga e sempre uguale. ";
    const auto cold = [&](const std::optional<AdapterUse>& adapter) {
        return run(*open(), {ask(adapter, prefix)}).front();
    };
    const auto cold_a = cold(adapters[4]);
    const auto cold_b = cold(adapters[7]);
    const auto cold_base = cold(std::nullopt);
    const auto check = [&](const std::optional<AdapterUse>& adapter, const Answer& expected,
                           bool seen = false) {
        const auto warm = run(*engine, {ask(adapter, prefix)}).front();
        EXPECT_EQ(warm.response.usage.cached_tokens > 0, seen);
        expect_alike(warm, expected, "the prefix");
        if (seen) return;
        for (std::size_t i = 0; i < warm.response.logprobs.size(); ++i)
            EXPECT_EQ(warm.response.logprobs[i].logprob, expected.response.logprobs[i].logprob);
    };
    check(adapters[4], cold_a);
    check(adapters[7], cold_b);
    check(adapters[4], cold_a, true);
    check(std::nullopt, cold_base);
    check(std::nullopt, cold_base, true);
}

// Case 18: many requests, room for two adapters of eight, and a thread that takes them away.
TEST_F(Adapters, StayApartUnderFire) {
    std::vector<AdapterUse> adapters;
    for (std::uint32_t i = 0; i < 8; ++i)
        adapters.push_back(
            write_adapter(folder_, "f" + std::to_string(i), {.seed = 40 + i, .rank = 16}));
    std::vector<Answer> solo;
    std::uint64_t one = 0;
    {
        const auto engine = open();
        for (const auto& adapter : adapters)
            solo.push_back(run(*engine, {ask(adapter)}).front());
        one = engine->adapters().bytes / 8;
    }
    const auto engine = open(with_room(one * 2));
    std::vector<Question> questions;
    for (std::size_t i = 0; i < 96; ++i)
        questions.push_back(ask(adapters[i * 5 % 8]));
    std::atomic<bool> done = false;
    std::uint64_t most = 0;
    std::thread taker([&] {
        for (std::size_t i = 0; !done; ++i) {
            engine->drop_adapter(adapters[i % 8].hash);
            most = std::max(most, engine->adapters().bytes);
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    });
    const auto answers = run(*engine, questions);
    done = true;
    taker.join();
    for (std::size_t i = 0; i < answers.size(); ++i)
        expect_alike(solo[i * 5 % 8], answers[i], "request " + std::to_string(i));
    EXPECT_LE(most, one * 2);
    for (const auto& adapter : adapters)
        engine->drop_adapter(adapter.hash);
    // The last sequence gives its adapter back just after its answer ended.
    for (int i = 0; i < 200 && engine->adapters().bytes > 0; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(engine->adapters().bytes, 0U);
    EXPECT_EQ(engine->adapters().hot, 0U);
    EXPECT_GT(engine->adapters().loads, 8U);
}

TEST_F(Adapters, OneThatCanNeverFitIsRefusedWithNumbers) {
    const auto engine = open(with_room(1000));
    const auto answer = run(*engine, {ask(write_adapter(folder_, "big", {}))}).front();
    ASSERT_TRUE(answer.error);
    EXPECT_EQ(answer.error->code(), ErrorCode::exhausted);
    EXPECT_THAT(answer.error->message(), HasSubstr("MiB"));
}

TEST_F(Adapters, InTurnsNobodyStarves) {
    const auto engine = open(in_turns());
    const auto adapters = eight();
    std::vector<Question> questions;
    for (std::size_t i = 0; i < 24; ++i)
        questions.push_back(i % 3 == 0 ? ask(std::nullopt) : ask(adapters[i % 8]));
    for (const Answer& answer : run(*engine, questions))
        EXPECT_FALSE(answer.error) << answer.error->message();
}

}  // namespace
}  // namespace molly::engine
