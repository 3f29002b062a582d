// The deterministic mode with long texts: not alike, the same to the last bit, in any company.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engine/internal/test_question.h"

namespace molly::engine {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): the cast of these tests

Question long_question(std::size_t words, std::string last) {
    std::string text;
    for (std::size_t i = 0; i < words; ++i)
        text += fmt::format("parola {} ", i * 7919 % 997);
    return ask(std::nullopt, text + last);
}

// ggml shares a lone row among its threads where the text is long, and computes 64 rows and more in
// tiles.
TEST(Deterministic, LongTextsAreTheSameAloneAndTogether) {
    Limits limits;
    limits.deterministic = true;
    limits.threads = 2;
    limits.context_tokens_max = 2048;
    const auto engine = open(limits);
    std::vector<Question> questions;
    for (const std::size_t words : {20U, 60U, 150U, 220U})
        questions.push_back(long_question(words, "Fine."));
    bool long_enough = false;
    for (const std::size_t company : {2U, 4U}) {
        const auto together = run(
            *engine, {questions.begin(), questions.begin() + static_cast<std::ptrdiff_t>(company)});
        for (std::size_t i = 0; i < company; ++i) {
            const Answer alone = run(*engine, {questions[i]}).front();
            long_enough = long_enough || alone.response.usage.prompt_tokens > 512;
            ASSERT_EQ(alone.text(), together[i].text()) << i << " of " << company;
            ASSERT_EQ(alone.response.logprobs.size(), together[i].response.logprobs.size());
            for (std::size_t k = 0; k < alone.response.logprobs.size(); ++k)
                EXPECT_EQ(alone.response.logprobs[k].logprob,
                          together[i].response.logprobs[k].logprob)
                    << i << " of " << company << " token " << k;
        }
    }
    EXPECT_TRUE(long_enough) << "no text was long enough to prove anything";
}

}  // namespace
}  // namespace molly::engine
