// How far answers in a batch are from the same ones alone, on a model of your own: set
// MOLLY_NUMERICS to a GGUF file. The figures of docs/engine.md come from here.
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engine/internal/test_adapter.h"
#include "engine/internal/test_question.h"

namespace molly::engine {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): the cast of these tests

/// The linear layers of a model's blocks.
std::vector<TestWeight> weights_of(const fs::path& model) {
    ggml_context* tensors = nullptr;
    gguf_context* file = gguf_init_from_file(model.c_str(), {.no_alloc = true, .ctx = &tensors});
    std::vector<TestWeight> weights;
    for (ggml_tensor* tensor = ggml_get_first_tensor(tensors); tensor != nullptr;
         tensor = ggml_get_next_tensor(tensors, tensor)) {
        const std::string name = ggml_get_name(tensor);
        if (ggml_n_dims(tensor) == 2 && name.starts_with("blk."))
            weights.push_back({name, tensor->ne[0], tensor->ne[1]});
    }
    gguf_free(file);
    ggml_free(tensors);
    return weights;
}

struct Gap {
    float largest = 0;
    double sum = 0;
    std::size_t tokens = 0;
    std::size_t other_texts = 0;
    std::size_t unequal = 0;  // tokens whose log-probability is not the same to the last bit
};

/// Up to the first token that differs: from there on the two are about different texts.
void compare(const domain::Response& alone, const domain::Response& together, Gap& gap) {
    const std::size_t both = std::min(alone.logprobs.size(), together.logprobs.size());
    for (std::size_t i = 0; i < both; ++i) {
        if (alone.logprobs[i].token != together.logprobs[i].token) {
            ++gap.other_texts;
            return;
        }
        const float apart = std::abs(alone.logprobs[i].logprob - together.logprobs[i].logprob);
        gap.largest = std::max(gap.largest, apart);
        gap.sum += apart;
        gap.unequal += apart != 0 ? 1 : 0;
        ++gap.tokens;
    }
    if (alone.logprobs.size() != together.logprobs.size()) ++gap.other_texts;
}

Gap measure(const fs::path& model, bool deterministic, const std::vector<AdapterUse>& adapters) {
    Limits limits;
    limits.deterministic = deterministic;
    limits.sequences_max = 16;
    limits.context_tokens_max = 512;
    auto engine = *Engine::open(model, limits);
    const std::vector<std::string> texts = {
        "La capitale d'Italia",     "Domani a Milano", "The weather today",
        "Il contratto prevede che", "Nel 1861",        "Una ricetta semplice",
        "Gentile signora,",         "Il mare"};
    std::vector<Question> questions;
    for (std::size_t i = 0; i < 16; ++i) {
        std::vector<AdapterUse> uses;
        if (!adapters.empty() && i % 4 != 3) uses.push_back(adapters[i % adapters.size()]);
        Question question = ask_all(std::move(uses));
        question.request.messages.clear();
        question.request.operation = domain::Operation::complete;
        question.request.prompt = domain::Content(texts[i % texts.size()]);
        question.request.sampling.answer_tokens_max = 64;
        questions.push_back(std::move(question));
    }
    std::vector<Answer> alone;
    for (const Question& question : questions)
        alone.push_back(run(*engine, {question}).front());
    Gap gap;
    for (const std::size_t company : {2U, 3U, 5U, 8U, 16U}) {
        const auto together = run(
            *engine, {questions.begin(), questions.begin() + static_cast<std::ptrdiff_t>(company)});
        for (std::size_t i = 0; i < company; ++i) {
            EXPECT_FALSE(together[i].error) << together[i].text();
            compare(alone[i].response, together[i].response, gap);
        }
    }
    return gap;
}

TEST(Numerics, AreMeasuredOnAModelOfYourOwn) {
    const char* model = std::getenv("MOLLY_NUMERICS");
    if (model == nullptr) GTEST_SKIP() << "MOLLY_NUMERICS names no model";
    const TestFolder folder;
    std::vector<AdapterUse> adapters;
    for (std::uint32_t i = 0; i < 6; ++i)
        adapters.push_back(write_adapter(
            folder, "n" + std::to_string(i),
            {.seed = 900 + i, .rank = 16, .strength = 0.03F, .weights = weights_of(model)}));
    for (const bool adapted : {false, true}) {
        for (const bool deterministic : {false, true}) {
            const Gap gap =
                measure(model, deterministic, adapted ? adapters : std::vector<AdapterUse>());
            fmt::print(
                "{}, {}: largest {:.6f}, mean {:.7f}, {} of {} tokens not the same to the "
                "last bit, {} of 34 answers another text\n",
                adapted ? "with adapters" : "the base alone",
                deterministic ? "deterministic" : "default", gap.largest,
                gap.sum / static_cast<double>(std::max<std::size_t>(1, gap.tokens)), gap.unequal,
                gap.tokens, gap.other_texts);
            if (deterministic) {
                EXPECT_EQ(gap.unequal, 0U);
                EXPECT_EQ(gap.other_texts, 0U);
            }
        }
    }
}

}  // namespace
}  // namespace molly::engine
