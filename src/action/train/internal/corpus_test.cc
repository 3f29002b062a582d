#include "train/internal/corpus.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "train/internal/test_corpus.h"

namespace molly::train {
namespace {

std::vector<std::int32_t> inputs_of(const Corpus& corpus, std::uint64_t step, std::uint64_t seed) {
    BatchArrays batch(4, corpus.context());
    corpus.fill(batch, step, seed);
    const Batch view = batch.view(4);
    return {view.input.begin(), view.input.end()};
}

TEST(Corpus, a_step_and_a_seed_decide_the_batch) {
    const TestCorpus test;
    const Corpus one = test.open();
    const Corpus two = test.open();
    EXPECT_EQ(inputs_of(one, 5, 1), inputs_of(two, 5, 1));
    EXPECT_NE(inputs_of(one, 5, 1), inputs_of(one, 6, 1));
    EXPECT_NE(inputs_of(one, 5, 1), inputs_of(one, 5, 2));
}

TEST(Corpus, any_step_can_come_first) {
    const TestCorpus test;
    const Corpus one = test.open();
    const Corpus two = test.open();
    for (std::uint64_t step = 0; step < 300; ++step)
        inputs_of(one, step, 1);
    EXPECT_EQ(inputs_of(one, 300, 1), inputs_of(two, 300, 1));
}

TEST(Corpus, the_cache_gives_the_same_tokens) {
    const TestCorpus test;
    const Corpus fresh = test.open();
    const Corpus cached = test.open();
    for (std::size_t s = 0; s < fresh.sources().size(); ++s) {
        EXPECT_EQ(fresh.sources()[s].training, cached.sources()[s].training);
        EXPECT_EQ(fresh.sources()[s].held_out, cached.sources()[s].held_out);
    }
}

TEST(Corpus, a_changed_text_is_read_again) {
    const TestCorpus test;
    const auto before = test.open().sources()[0].training;
    test.change();
    EXPECT_NE(test.open().sources()[0].training, before);
}

TEST(Corpus, held_out_text_is_not_trained_on) {
    const TestCorpus test;
    const Corpus corpus = test.open();
    std::string trained;
    for (const std::uint16_t token : corpus.sources()[0].training)
        trained += test.tokenizer().bytes(token);
    std::string held;
    for (const std::uint16_t token : corpus.sources()[0].held_out)
        held += test.tokenizer().bytes(token);
    ASSERT_GT(held.size(), 500U);
    // Every document of the test text names its number.
    const std::size_t at = held.find("documento ");
    ASSERT_NE(at, std::string::npos);
    const std::string name = held.substr(at, held.find('.', at) - at + 1);
    EXPECT_EQ(trained.find(name), std::string::npos) << name;
}

TEST(Corpus, a_token_sees_its_own_document_only) {
    BatchArrays arrays(1, 8);
    const std::uint16_t tokens[] = {5, 6, 99, 7, 8, 99, 9, 10, 11};
    arrays.set(0, tokens, 99);
    const Batch batch = arrays.view(1);
    const std::vector<std::uint32_t> first(batch.first.begin(), batch.first.end());
    EXPECT_EQ(first, (std::vector<std::uint32_t>{0, 0, 2, 2, 2, 5, 5, 5}));
    EXPECT_EQ(batch.target[7], 11);
}

TEST(Corpus, a_source_of_weight_two_is_read_twice_as_often) {
    const TestCorpus test;
    const Corpus once = test.open(1);
    const Corpus twice = test.open(2);
    EXPECT_EQ(twice.training_tokens(), 2 * once.training_tokens());
    const auto separators = [](const Corpus& corpus) {
        std::size_t sum = 0;
        for (std::uint64_t step = 0; step < corpus.training_tokens() / corpus.context() / 4;
             ++step) {
            sum += static_cast<std::size_t>(
                std::ranges::count(inputs_of(corpus, step, 1), corpus.separator()));
        }
        return static_cast<double>(sum);
    };
    ASSERT_GT(separators(once), 100);
    EXPECT_NEAR(separators(twice) / separators(once), 2, 0.1);
}

TEST(Corpus, a_short_text_is_refused) {
    const TestCorpus test;
    const TestFolder folder;
    Source source;
    source.file = folder.write("short.txt", "ciao\n");
    const auto opened = Corpus::open({source}, test.tokenizer(), 32, folder.path() / "tokens");
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code(), ErrorCode::invalid_request);
}

}  // namespace
}  // namespace molly::train
