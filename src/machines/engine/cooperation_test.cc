// Drafts from elsewhere change how fast an answer comes, never what it says.
#include <functional>
#include <map>
#include <thread>

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
using Tokens = std::vector<std::int32_t>;

Limits when(Speculation speculation, bool deterministic = true) {
    Limits limits;
    limits.speculation = speculation;
    limits.deterministic = deterministic;
    limits.context_tokens_max = 2048;
    limits.inbox_jobs_max = 1000;
    return limits;
}

/// A continuation of a text that repeats itself: the test model goes on for long.
Question long_question(const std::string& text) {
    Question question = ask(std::nullopt);
    question.request.operation = domain::Operation::complete;
    question.request.messages.clear();
    question.request.prompt = domain::Content(fmt::format("{0}\n{0}\n{0}\n{0}\n", text));
    question.request.sampling.answer_tokens_max = 40;
    return question;
}

/// What a drafter says next, given the answer so far; nothing: it goes on alone.
using Guess = std::function<std::optional<Tokens>(const Tokens& came)>;

struct Checking {
    Answer answer;
    Tokens came;  // as the replies said
    std::uint32_t drafted = 0;
    std::uint32_t accepted = 0;
    std::optional<Error> error;  // of a check
    bool ended = false;
};

int last_id = 0;

std::shared_ptr<Verification> session_of(Engine& engine, Question& question, bool waits = true) {
    question.request.id = fmt::format("req_{}", ++last_id);
    VerificationTerms terms;
    terms.id = fmt::format("ver_{}", last_id);
    terms.owner = "me";
    terms.vocabulary = engine.describe().vocabulary;
    terms.waits = waits;
    terms.patience = std::chrono::seconds(20);
    auto session = engine.verify(std::move(terms));
    EXPECT_TRUE(session) << session.error().message();
    EXPECT_TRUE((*session)->serve(question.request.id));
    return *session;
}

Task<void> draft_with(std::shared_ptr<Verification> session, Guess guess, Checking& out) {
    while (!out.ended && !out.error) {
        DraftBlock block;
        block.from = static_cast<std::uint32_t>(out.came.size());
        auto tokens = guess(out.came);
        block.alone = !tokens;
        if (tokens) block.tokens = *std::move(tokens);
        out.drafted += static_cast<std::uint32_t>(block.tokens.size());
        const bool alone = block.alone;
        const auto checked = co_await session->check(std::move(block));
        if (!checked) {
            out.error = checked.error();
            co_return;
        }
        out.accepted += checked->accepted;
        out.came.insert(out.came.end(), checked->tokens.begin(), checked->tokens.end());
        out.ended = checked->ended;
        if (alone) co_return;
    }
}

/// Asks each question while a drafter of its own checks its guesses.
std::vector<Checking> check_all(Engine& engine, std::vector<Question> questions,
                                const std::vector<Guess>& guesses) {
    boost::asio::io_context io;
    std::vector<Checking> all(questions.size());
    for (std::size_t i = 0; i < questions.size(); ++i) {
        const auto session = session_of(engine, questions[i]);
        spawn(io.get_executor(), [&, i]() -> Task<void> {
            Collector collector;
            const Question& question = questions[i];
            Result<void> result;
            if (question.adapters.empty()) {
                result = co_await engine.generate(question.request, collector);
            } else {
                result =
                    co_await engine.generate_with(question.request, question.adapters, collector);
            }
            if (!result) all[i].answer.error = result.error();
            all[i].answer.response = collector.take();
        });
        spawn(io.get_executor(), [&all, &guesses, session, i]() -> Task<void> {
            return draft_with(session, guesses[i], all[i]);
        });
    }
    io.run();
    return all;
}

Checking check_one(Engine& engine, const Question& question, const Guess& guess) {
    return check_all(engine, {question}, {guess}).front();
}

Guess empty_blocks() {
    return [](const Tokens&) { return std::optional(Tokens()); };
}

/// Drafts `length` tokens of the truth, with the one at `wrong` in each block changed.
Guess of_truth(Tokens truth, std::size_t length, std::size_t wrong) {
    return [truth = std::move(truth), length, wrong](const Tokens& came) {
        Tokens block;
        for (std::size_t i = came.size(); i < truth.size() && block.size() < length; ++i)
            block.push_back(block.size() == wrong ? (truth[i] + 1) % 100 : truth[i]);
        return std::optional(block);
    };
}

void expect_same(const Answer& a, const Answer& b, const std::string& what) {
    ASSERT_FALSE(a.error) << what << ": " << a.error->message();
    ASSERT_FALSE(b.error) << what << ": " << b.error->message();
    EXPECT_EQ(a.text(), b.text()) << what;
    EXPECT_EQ(a.response.finish, b.response.finish) << what;
    EXPECT_EQ(a.response.usage.answer_tokens, b.response.usage.answer_tokens) << what;
    ASSERT_EQ(a.response.logprobs.size(), b.response.logprobs.size()) << what;
    for (std::size_t i = 0; i < a.response.logprobs.size(); ++i) {
        EXPECT_EQ(a.response.logprobs[i].token, b.response.logprobs[i].token) << what << " " << i;
        EXPECT_EQ(a.response.logprobs[i].logprob, b.response.logprobs[i].logprob)
            << what << " token " << i;
    }
}

std::vector<Question> some_questions(const TestFolder& folder) {
    std::vector<Question> all = {long_question("Parlami di Roma."),
                                 long_question("What is the sea?"),
                                 ask(write_adapter(folder, "law", {.seed = 31, .rank = 8}))};
    all.back().request.sampling.answer_tokens_max = 40;
    return all;
}

TEST(CooperationTest, GreedyAnswersAreTheSameToTheLastBitWhateverIsDrafted) {
    const TestFolder folder;
    const auto plain = open(when(Speculation::off));
    const auto checking = open(when(Speculation::measured));
    for (const Question& question : some_questions(folder)) {
        const Answer expected = run(*plain, {question}).front();
        const Checking bare = check_one(*checking, question, empty_blocks());
        expect_same(expected, bare.answer, "empty blocks");
        ASSERT_FALSE(bare.error) << bare.error->message();
        EXPECT_TRUE(bare.ended);
        EXPECT_EQ(bare.came.size(), expected.response.usage.answer_tokens);
        for (const std::size_t length : {1U, 2U, 5U, 32U}) {
            for (const std::size_t wrong : {0U, 1U, 4U, 99U}) {
                const std::string what = fmt::format("{} with {} wrong", length, wrong);
                const Checking got =
                    check_one(*checking, question, of_truth(bare.came, length, wrong));
                ASSERT_FALSE(got.error) << what << got.error->message();
                expect_same(expected, got.answer, what);
                EXPECT_EQ(got.came, bare.came) << what;
                EXPECT_TRUE(got.ended) << what;
                if (wrong == 0) {  // none of a block can come
                    EXPECT_EQ(got.accepted, 0U) << what;
                } else if (wrong >= std::min(length, bare.came.size())) {
                    EXPECT_EQ(got.accepted, got.drafted) << what;
                } else {
                    EXPECT_GT(got.accepted, 0U) << what;
                    EXPECT_LT(got.accepted, got.drafted) << what;
                }
            }
        }
    }
    EXPECT_GT(checking->speculation().accepted, 100U);
}

TEST(CooperationTest, TogetherInOneBatchToo) {
    const TestFolder folder;
    const auto plain = open(when(Speculation::off));
    const auto checking = open(when(Speculation::always));
    const auto questions = some_questions(folder);
    std::vector<Guess> guesses;
    for (const Question& question : questions) {
        const Checking bare = check_one(*checking, question, empty_blocks());
        guesses.push_back(of_truth(bare.came, 6, guesses.size() + 2));
    }
    const auto together = check_all(*checking, questions, guesses);
    for (std::size_t i = 0; i < questions.size(); ++i)
        expect_same(run(*plain, {questions[i]}).front(), together[i].answer, fmt::format("{}", i));
}

TEST(CooperationTest, ASeedGivesTheSameAnswer) {
    const TestFolder folder;
    const auto plain = open(when(Speculation::off));
    const auto checking = open(when(Speculation::measured));
    for (Question question : some_questions(folder)) {
        question.request.sampling.temperature = 0.4F;
        question.request.sampling.seed = 11;
        question.request.sampling.stop = {"zzzz"};
        const Answer expected = run(*plain, {question}).front();
        const Checking bare = check_one(*checking, question, empty_blocks());
        const Checking got = check_one(*checking, question, of_truth(bare.came, 5, 3));
        expect_same(expected, got.answer, "seed");
        EXPECT_GT(got.accepted, 0U);
    }
}

Question shaped(std::string grammar) {
    Question question = ask(std::nullopt, "abab baab");
    question.request.format.kind = domain::OutputFormat::Kind::grammar;
    question.request.format.schema = domain::Content(std::move(grammar));
    return question;
}

/// How often each text came, over many seeds.
std::map<std::string, double> histogram(Engine& engine, std::uint64_t first_seed,
                                        std::uint32_t many, const Guess* guess) {
    std::map<std::string, double> counts;
    std::vector<Question> questions;
    for (std::uint32_t i = 0; i < many; ++i) {
        Question question = shaped("root ::= [ab] [ab] [ab]");
        question.request.sampling.temperature = 3;
        question.request.sampling.top_k = 0;
        question.request.sampling.top_p = 1;
        question.request.sampling.min_p = 0;
        question.request.sampling.seed = first_seed + i;
        questions.push_back(std::move(question));
    }
    if (guess == nullptr) {
        for (const Answer& answer : run(engine, questions))
            ++counts[answer.text()];
        return counts;
    }
    for (std::size_t i = 0; i < questions.size(); i += 8) {
        const auto first = questions.begin() + static_cast<std::ptrdiff_t>(i);
        const std::size_t end = std::min(i + 8, questions.size());
        const std::vector<Question> some(first,
                                         questions.begin() + static_cast<std::ptrdiff_t>(end));
        for (const Checking& one : check_all(engine, some, std::vector<Guess>(some.size(), *guess)))
            ++counts[one.answer.text()];
    }
    return counts;
}

// Other seeds on each side: two samples of one distribution, by the chi-square test of homogeneity.
TEST(CooperationTest, SampledAnswersHaveTheModelsDistribution) {
    constexpr std::uint32_t many = 304;
    const auto plain = open(when(Speculation::off, false));
    const auto checking = open(when(Speculation::measured, false));
    const Tokens aba = check_one(*checking, shaped("root ::= \"aba\""), empty_blocks()).came;
    ASSERT_GE(aba.size(), 2U);
    const Guess guess = of_truth(aba, 3, 99);
    const auto expected = histogram(*plain, 1, many, nullptr);
    const std::uint64_t before = checking->speculation().accepted;
    const auto got = histogram(*checking, 1'000'001, many, &guess);
    EXPECT_GT(checking->speculation().accepted - before, many / 20);
    EXPECT_LT(checking->speculation().accepted, checking->speculation().drafted);
    expect_one_distribution(expected, got);
}

/// Runs one coroutine to its end.
template <class Body>
void on_io(Body body) {
    boost::asio::io_context io;
    spawn(io.get_executor(), std::move(body));
    io.run();
}

TEST(CooperationTest, AnEngineDraftsWhatItWouldSayAndTakesBackWhatWasWrong) {
    const auto engine = open(when(Speculation::off));
    const auto other = open(when(Speculation::measured));
    const Question question = long_question("Dimmi qualcosa di bello sul mare.");
    const Tokens truth = check_one(*other, question, empty_blocks()).came;
    ASSERT_GT(truth.size(), 12U);
    on_io([&]() -> Task<void> {
        auto drafting = engine->draft(question.request);
        EXPECT_TRUE(drafting);
        if (!drafting) co_return;
        auto first = co_await (*drafting)->propose(Tokens(), 5);
        EXPECT_TRUE(first) << first.error().message();
        EXPECT_EQ(*first, Tokens(truth.begin(), truth.begin() + 5));
        // Two came, then another: the draft goes on behind it as a new one of the same text would.
        const std::int32_t other_token = (truth[2] + 1) % 100;
        const Tokens came = {truth[0], truth[1], other_token};
        auto second = co_await (*drafting)->propose(came, 4);
        auto fresh = engine->draft(question.request);
        auto again = co_await (*fresh)->propose(came, 4);
        EXPECT_TRUE(second && again);
        EXPECT_EQ(*second, *again);
        // All that was drafted came, and one more.
        auto third = co_await (*fresh)->propose(*again, 1);
        EXPECT_TRUE(third);
        (*drafting)->give_up();
        auto late = co_await (*drafting)->propose(Tokens(), 4);
        EXPECT_FALSE(late);
    });
    // Their places are free again.
    for (int i = 0; i < 500 && engine->load().running > 0; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_EQ(engine->load().running, 0U);
}

TEST(CooperationTest, TwoEnginesAnswerTogether) {
    const auto small = open(when(Speculation::off));
    const auto large = open(when(Speculation::measured));
    const auto plain = open(when(Speculation::off));
    Question question = long_question("Raccontami una storia.");
    const Answer expected = run(*plain, {question}).front();
    const auto session = session_of(*large, question);
    Checking all;
    boost::asio::io_context io;
    spawn(io.get_executor(), [&]() -> Task<void> {
        Collector collector;
        const auto result = co_await large->generate(question.request, collector);
        if (!result) all.answer.error = result.error();
        all.answer.response = collector.take();
    });
    spawn(io.get_executor(), [&]() -> Task<void> {
        auto drafting = small->draft(question.request);
        Tokens news;
        while (!all.ended) {
            auto tokens = co_await (*drafting)->propose(news, 4);
            EXPECT_TRUE(tokens) << tokens.error().message();
            if (!tokens) co_return;
            DraftBlock block;
            block.from = static_cast<std::uint32_t>(all.came.size());
            block.tokens = *std::move(tokens);
            all.drafted += static_cast<std::uint32_t>(block.tokens.size());
            auto checked = co_await session->check(std::move(block));
            EXPECT_TRUE(checked);
            if (!checked) co_return;
            all.accepted += checked->accepted;
            all.ended = checked->ended;
            news = std::move(checked->tokens);
            all.came.insert(all.came.end(), news.begin(), news.end());
        }
    });
    io.run();
    expect_same(expected, all.answer, "two engines");
    EXPECT_EQ(all.accepted, all.drafted) << "the same weights drafted something else";
    EXPECT_GT(all.accepted, 10U);
    EXPECT_EQ(small->describe().vocabulary, large->describe().vocabulary);
}

TEST(CooperationTest, AnAnswerGoesOnAloneWhenNobodyDrafts) {
    const auto plain = open(when(Speculation::off));
    const auto checking = open(when(Speculation::measured));
    Question question = long_question("Parlami di Roma.");
    const Answer expected = run(*plain, {question}).front();
    // Told so after some blocks.
    int blocks = 0;
    const Checking told = check_one(*checking, question, [&](const Tokens&) {
        return ++blocks < 4 ? std::optional(Tokens()) : std::nullopt;
    });
    expect_same(expected, told.answer, "told");
    // Nobody ever comes.
    question.request.id = "req_patience";
    VerificationTerms terms;
    terms.id = "ver_patience";
    terms.owner = "me";
    terms.vocabulary = checking->describe().vocabulary;
    terms.waits = true;
    terms.patience = std::chrono::milliseconds(150);
    const auto session = checking->verify(terms);
    ASSERT_TRUE(session);
    ASSERT_TRUE((*session)->serve("req_patience"));
    EXPECT_FALSE((*session)->serve("req_other"));
    const MonoTime before = system_clock().now();
    expect_same(expected, run(*checking, {question}).front(), "patience");
    EXPECT_GE(system_clock().now() - before, std::chrono::milliseconds(150));
    // What came meanwhile is told to who comes late.
    Checking late;
    on_io([&]() -> Task<void> { return draft_with(*session, empty_blocks(), late); });
    EXPECT_TRUE(late.ended);
    EXPECT_EQ(late.came.size(), expected.response.usage.answer_tokens);
}

TEST(CooperationTest, ASessionThatNobodyClaimsEnds) {
    const auto checking = open(when(Speculation::measured));
    VerificationTerms terms;
    terms.id = "ver_1";
    terms.owner = "me";
    terms.vocabulary = checking->describe().vocabulary;
    terms.unclaimed_max = std::chrono::milliseconds(30);
    const auto session = checking->verify(terms);
    ASSERT_TRUE(session);
    EXPECT_NE(checking->verification("ver_1", "me"), nullptr);
    EXPECT_EQ(checking->verification("ver_1", "you"), nullptr);
    EXPECT_EQ(checking->verification("ver_2", "me"), nullptr);
    Checking nobody;
    on_io([&]() -> Task<void> { return draft_with(*session, empty_blocks(), nobody); });
    EXPECT_TRUE(nobody.ended);
    EXPECT_TRUE(nobody.came.empty());
}

TEST(CooperationTest, ACallerThatLeavesEndsTheSession) {
    const auto checking = open(when(Speculation::measured));
    Question question = long_question("Parlami di Roma.");
    int blocks = 0;
    const Checking got = check_one(*checking, question, [&](const Tokens&) {
        if (++blocks == 3) question.request.cancellation->cancel();
        return std::optional(Tokens());
    });
    ASSERT_TRUE(got.answer.error);
    EXPECT_EQ(got.answer.error->code(), ErrorCode::cancelled);
    EXPECT_TRUE(got.ended);
    EXPECT_LT(got.came.size(), 6U);
}

TEST(CooperationTest, AnEngineThatGoesEndsItsSessions) {
    auto checking = open(when(Speculation::measured));
    Question question = long_question("Parlami di Roma.");
    const auto session = session_of(*checking, question);
    checking.reset();
    Checking nobody;
    on_io([&]() -> Task<void> { return draft_with(session, empty_blocks(), nobody); });
    EXPECT_TRUE(nobody.ended);
}

void expect_refused(const Guess& guess, ErrorCode code, const char* cure) {
    const auto checking = open(when(Speculation::measured));
    Question question = long_question("Parlami di Roma.");
    const auto session = session_of(*checking, question);
    Checking got;
    on_io([&]() -> Task<void> { return draft_with(session, guess, got); });
    ASSERT_TRUE(got.error);
    EXPECT_EQ(got.error->code(), code);
    EXPECT_THAT(got.error->message(), HasSubstr(cure));
}

TEST(CooperationTest, BadBlocksAreRefusedWithTheCure) {
    const auto constant = [](Tokens tokens) -> Guess {
        return [tokens](const Tokens&) { return std::optional(tokens); };
    };
    expect_refused(constant({-1}), ErrorCode::invalid_request, "vocabulary");
    expect_refused(constant({1'000'000'000}), ErrorCode::invalid_request, "vocabulary");
    expect_refused(constant(Tokens(33, 1)), ErrorCode::invalid_request, "at most 32");
}

TEST(CooperationTest, WhatCannotBeCheckedIsSaidAtTheDoor) {
    VerificationTerms terms;
    terms.id = "ver_a";
    terms.vocabulary = "0";
    const auto off = open(when(Speculation::off));
    auto refused = off->verify(terms);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::unsupported);
    const auto checking = open(when(Speculation::measured));
    refused = checking->verify(terms);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::conflict);
    EXPECT_EQ(refused.error().reason(), "foreign_vocabulary");
    terms.vocabulary = checking->describe().vocabulary;
    EXPECT_EQ(terms.vocabulary.size(), 32U);
    ASSERT_TRUE(checking->verify(terms));
    refused = checking->verify(terms);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::conflict);
    for (int i = 1; i < 64; ++i) {
        terms.id = fmt::format("ver_{}", i);
        terms.owner = fmt::format("member {}", (i - 1) / 16);
        ASSERT_TRUE(checking->verify(terms)) << i;
        if (i % 16 != 0) continue;
        terms.id = "ver_more";
        EXPECT_FALSE(checking->verify(terms)) << "seventeen of one member";
    }
    terms.id = "ver_one_more";
    terms.owner = "somebody else";
    refused = checking->verify(terms);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::exhausted);
}

}  // namespace
}  // namespace molly::engine
