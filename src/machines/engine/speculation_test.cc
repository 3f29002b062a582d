// Drafted tokens change how fast an answer comes, never what it says.
#include <fstream>
#include <iterator>
#include <map>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/internal/test_adapter.h"
#include "engine/internal/test_distribution.h"
#include "engine/internal/test_question.h"

namespace molly::engine {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): the cast of these tests
using ::testing::HasSubstr;

Limits when(Speculation speculation, bool deterministic = true) {
    Limits limits;
    limits.speculation = speculation;
    limits.deterministic = deterministic;
    limits.context_tokens_max = 2048;
    limits.inbox_jobs_max = 1000;
    return limits;
}

/// A continuation of a text that repeats itself, so that there is much to copy.
Question copying(std::string text, std::optional<AdapterUse> adapter = {}) {
    Question question = ask(std::move(adapter));
    question.request.operation = domain::Operation::complete;
    question.request.messages.clear();
    std::string whole;
    for (int i = 0; i < 4; ++i)
        whole += text + "\n";
    question.request.prompt = domain::Content(std::move(whole));
    question.request.sampling.answer_tokens_max = 60;
    return question;
}

Question shaped(Question question, std::string grammar) {
    question.request.format.kind = domain::OutputFormat::Kind::grammar;
    question.request.format.schema = domain::Content(std::move(grammar));
    return question;
}

class SpeculationTest : public ::testing::Test {
protected:
    std::vector<Question> questions() {
        const auto law = write_adapter(folder_, "law", {.seed = 31, .rank = 8});
        const auto poem = write_adapter(folder_, "poem", {.seed = 32, .rank = 16});
        std::vector<Question> all = {
            copying("Il gatto dorme sul divano e il cane guarda la porta."),
            copying("the sea is blue and the wind is cold", law),
            copying("Uno, due, tre, quattro, cinque.", poem),
            ask(std::nullopt, "Ripeti: la casa la casa la casa la casa"),
            ask(law, "a b c a b c a b c a b c a b"),
            shaped(copying("abc abc abc"), "root ::= (\"abc \" | \"abd \"){12}"),
            shaped(copying("{\"a\": 1, \"b\": 2}", law),
                   "root ::= \"{\" (\"\\\"a\\\": \" [0-9] \", \"){3} \"\\\"b\\\": 2}\"")};
        for (Question& question : all)
            question.request.sampling.answer_tokens_max = 60;
        return all;
    }
    TestFolder folder_;
};

void expect_same(const Answer& a, const Answer& b, const std::string& what) {
    ASSERT_FALSE(a.error) << what << ": " << a.error->message();
    ASSERT_FALSE(b.error) << what << ": " << b.error->message();
    EXPECT_EQ(a.text(), b.text()) << what;
    EXPECT_EQ(a.response.finish, b.response.finish) << what;
    EXPECT_EQ(a.response.stop_sequence, b.response.stop_sequence) << what;
    EXPECT_EQ(a.response.usage.answer_tokens, b.response.usage.answer_tokens) << what;
    EXPECT_EQ(a.response.usage.prompt_tokens, b.response.usage.prompt_tokens) << what;
    ASSERT_EQ(a.response.logprobs.size(), b.response.logprobs.size()) << what;
    for (std::size_t i = 0; i < a.response.logprobs.size(); ++i) {
        EXPECT_EQ(a.response.logprobs[i].token, b.response.logprobs[i].token) << what << " " << i;
        EXPECT_EQ(a.response.logprobs[i].logprob, b.response.logprobs[i].logprob)
            << what << " token " << i;
    }
}

TEST_F(SpeculationTest, GreedyAnswersAreTheSameToTheLastBit) {
    const auto plain = open(when(Speculation::off));
    const auto drafting = open(when(Speculation::always));
    const auto all = questions();
    std::vector<Answer> expected;
    for (const Question& question : all)
        expected.push_back(run(*plain, {question}).front());
    for (std::size_t i = 0; i < all.size(); ++i)
        expect_same(expected[i], run(*drafting, {all[i]}).front(), fmt::format("alone {}", i));
    const auto together = run(*drafting, all);
    for (std::size_t i = 0; i < all.size(); ++i)
        expect_same(expected[i], together[i], fmt::format("together {}", i));
    EXPECT_GT(drafting->speculation().accepted, 50U);
    EXPECT_LT(drafting->speculation().accepted, drafting->speculation().drafted)
        << "no draft was wrong, so nothing was taken back";
    EXPECT_EQ(plain->speculation().drafted, 0U);
    EXPECT_FALSE(plain->speculation().on);
}

TEST_F(SpeculationTest, AnswersStopWhereTheyWould) {
    const auto plain = open(when(Speculation::off));
    const auto drafting = open(when(Speculation::always));
    const std::string whole =
        run(*plain, {copying("la casa sul mare, la casa sul monte")}).front().text();
    ASSERT_GT(whole.size(), 20U);
    for (std::size_t cut = 4; cut + 8 < whole.size(); cut += 9) {
        Question question = copying("la casa sul mare, la casa sul monte");
        question.request.sampling.stop = {whole.substr(cut, 5)};
        expect_same(run(*plain, {question}).front(), run(*drafting, {question}).front(),
                    fmt::format("stop at {}", cut));
    }
    for (std::uint32_t most = 1; most < 14; ++most) {
        Question question = copying("la casa sul mare, la casa sul monte");
        question.request.sampling.answer_tokens_max = most;
        const Answer answer = run(*drafting, {question}).front();
        expect_same(run(*plain, {question}).front(), answer, fmt::format("limit {}", most));
        EXPECT_LE(answer.response.usage.answer_tokens, most);
    }
}

// Whoever is parked between two steps goes on without the draft of the step before.
TEST_F(SpeculationTest, ParkedRequestsGoOn) {
    const auto plain = open(when(Speculation::off, false));
    Limits limits = when(Speculation::always, false);
    limits.memory_bytes_max = 150U << 10U;  // two that meet have not enough
    const auto drafting = open(limits);
    std::vector<Question> all;
    std::vector<Answer> expected;
    std::string text = "Dimmi";
    for (int words = 0; words < 24; ++words) {
        text += " ancora";
        if (words < 18) continue;
        Question question = ask(std::nullopt, text);
        question.request.sampling.answer_tokens_max = 110;
        question.request.sampling.frequency_penalty = -2;  // it repeats itself
        expected.push_back(run(*plain, {question}).front());
        all.push_back(std::move(question));
    }
    std::vector<Question> crowd;
    for (int i = 0; i < 24; ++i)
        crowd.push_back(all[static_cast<std::size_t>(i) % all.size()]);
    const auto together = run(*drafting, crowd);
    for (std::size_t i = 0; i < crowd.size(); ++i)
        expect_alike(expected[i % all.size()], together[i], fmt::format("{}", i));
    EXPECT_GT(drafting->memory().parked, 0U) << "there was memory enough to prove nothing";
    EXPECT_GT(drafting->speculation().accepted, 100U);
}

TEST_F(SpeculationTest, AKeptPrefixAfterADraftIsTheText) {
    Limits limits = when(Speculation::always, false);
    limits.sequences_max = 1;
    const auto drafting = open(limits);
    const auto plain = open(when(Speculation::off, false));
    const Question first = copying("Il gatto dorme e il cane guarda la porta, poi il gatto dorme.");
    const Answer before = run(*drafting, {first}).front();
    Question again = first;
    again.request.prompt = domain::Content(first.request.prompt.text() + before.text() + " Poi");
    const Answer warm = run(*drafting, {again}).front();
    EXPECT_GT(warm.response.usage.cached_tokens, 0U);
    expect_alike(run(*plain, {again}).front(), warm, "warm");
}

// The sampler draws each token from the model's own distribution and the draft is kept as long as
// it is what was drawn: with a seed, the same answer.
TEST_F(SpeculationTest, ASeedGivesTheSameAnswer) {
    const auto plain = open(when(Speculation::off));
    const auto drafting = open(when(Speculation::always));
    auto all = questions();
    for (std::size_t i = 0; i < all.size(); ++i) {
        all[i].request.sampling.temperature = 0.2F;
        all[i].request.sampling.frequency_penalty = 0.05F;
        all[i].request.sampling.seed = 7 + i;
        expect_same(run(*plain, {all[i]}).front(), run(*drafting, {all[i]}).front(),
                    fmt::format("{}", i));
    }
    EXPECT_GT(drafting->speculation().accepted, 0U);
}

/// How often each text came, over many seeds.
std::map<std::string, double> histogram(Engine& engine, std::uint64_t first_seed,
                                        std::uint32_t many) {
    std::vector<Question> questions;
    for (std::uint32_t i = 0; i < many; ++i) {
        Question question = shaped(copying("abab baab abba"), "root ::= [ab] [ab] [ab]");
        question.request.sampling.temperature = 3;
        question.request.sampling.top_k = 0;
        question.request.sampling.top_p = 1;
        question.request.sampling.min_p = 0;
        question.request.sampling.seed = first_seed + i;
        questions.push_back(std::move(question));
    }
    std::map<std::string, double> counts;
    for (const Answer& answer : run(engine, questions))
        ++counts[answer.text()];
    return counts;
}

// Other seeds on each side, so that equal counts would be no proof of anything: two samples of one
// distribution, by the chi-square test of homogeneity.
TEST_F(SpeculationTest, SampledAnswersHaveTheModelsDistribution) {
    constexpr std::uint32_t many = 300;
    const auto plain = open(when(Speculation::off, false));
    const auto drafting = open(when(Speculation::always, false));
    const auto expected = histogram(*plain, 1, many);
    const auto got = histogram(*drafting, 1'000'001, many);
    EXPECT_GT(drafting->speculation().drafted, many / 4);
    EXPECT_GT(drafting->speculation().accepted, many / 20);
    EXPECT_LT(drafting->speculation().accepted, drafting->speculation().drafted);
    expect_one_distribution(expected, got);
}

TEST_F(SpeculationTest, ADraftModelOfTheSameWeightsIsAlwaysRight) {
    Limits limits = when(Speculation::always);
    limits.draft_model = MOLLY_TEST_MODEL;
    limits.memory_bytes_max = 64U << 20U;
    const auto drafting = open(limits);
    const auto plain = open(when(Speculation::off));
    const auto all =
        std::vector<Question>{ask(std::nullopt, "Dimmi qualcosa di bello sul mare."),
                              ask(std::nullopt, "What is the sea?"), ask(std::nullopt, "Uno")};
    const auto together = run(*drafting, all);
    for (std::size_t i = 0; i < all.size(); ++i)
        expect_same(run(*plain, {all[i]}).front(), together[i], fmt::format("{}", i));
    const SpeculationState state = drafting->speculation();
    EXPECT_EQ(state.draft_model, "molly-test");
    EXPECT_GT(state.accepted, 20U);
    EXPECT_GT(static_cast<double>(state.accepted), 0.8 * static_cast<double>(state.drafted));
}

/// The test model with one word spelled differently.
fs::path other_words(const TestFolder& folder) {
    std::ifstream in(MOLLY_TEST_MODEL, std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    const std::size_t at = bytes.find("casa");
    EXPECT_NE(at, std::string::npos);
    bytes.replace(at, 4, "casA");
    const fs::path path = folder.path() / "other.gguf";
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
}

TEST_F(SpeculationTest, ADraftModelThatDoesNotFitIsRefused) {
    Limits limits = when(Speculation::measured);
    limits.draft_model = other_words(folder_);
    auto refused = Engine::open(MOLLY_TEST_MODEL, limits);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::conflict);
    EXPECT_THAT(refused.error().message(), HasSubstr("vocabulary"));
    EXPECT_THAT(refused.error().message(), HasSubstr("engine.draft_model"));
    limits.draft_model = folder_.path() / "nowhere.gguf";
    refused = Engine::open(MOLLY_TEST_MODEL, limits);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::not_found);
    limits.draft_model = MOLLY_TEST_MODEL;
    limits.memory_bytes_max = 1U << 20U;
    refused = Engine::open(MOLLY_TEST_MODEL, limits);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::exhausted);
    EXPECT_THAT(refused.error().message(), HasSubstr("engine.memory_mib"));
}

// Whatever was measured so far: the answers are right, and the numbers add up.
TEST_F(SpeculationTest, ByMeasurementToo) {
    const auto plain = open(when(Speculation::off));
    const auto measured = open(when(Speculation::measured));
    const auto all = questions();
    for (int turn = 0; turn < 3; ++turn) {
        const auto together = run(*measured, all);
        for (std::size_t i = 0; i < all.size(); ++i)
            expect_same(run(*plain, {all[i]}).front(), together[i], fmt::format("{}", i));
    }
    const SpeculationState state = measured->speculation();
    EXPECT_TRUE(state.on);
    EXPECT_LE(state.accepted, state.drafted);
    EXPECT_LE(state.steps, state.drafted);
}

}  // namespace
}  // namespace molly::engine
