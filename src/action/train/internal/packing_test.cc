#include "train/internal/packing.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "train/internal/random.h"

namespace molly::train {
namespace {

std::vector<Sequence> random_sequences(std::size_t count, std::size_t longest) {
    Random random(4);
    std::vector<Sequence> out(count);
    for (Sequence& sequence : out) {
        const std::size_t length = 2 + random.below(longest - 1);
        for (std::size_t t = 0; t < length; ++t) {
            sequence.tokens.push_back(static_cast<Token>(random.below(500)));
            sequence.learned.push_back(t > length / 2 ? 1 : 0);
        }
    }
    return out;
}

std::vector<const Sequence*> all(const std::vector<Sequence>& sequences) {
    std::vector<const Sequence*> out;
    for (const Sequence& sequence : sequences)
        out.push_back(&sequence);
    return out;
}

TEST(Packing, every_token_is_there_once_and_sees_its_own_sequence) {
    const auto sequences = random_sequences(200, 33);
    const Packing packing(all(sequences), 64);
    std::vector<std::size_t> rows(packing.rows());
    for (std::size_t r = 0; r < rows.size(); ++r)
        rows[r] = r;
    const PackedBatch batch = packing.batch(rows);
    std::vector<std::size_t> next(sequences.size());
    double learned = 0;
    for (std::size_t i = 0; i < batch.input.size(); ++i) {
        const std::uint32_t owner = batch.owner[i];
        if (owner == PackedBatch::nobody) {
            EXPECT_EQ(batch.weight[i], 0);
            EXPECT_EQ(batch.first[i], i % 64);
            continue;
        }
        const Sequence& sequence = sequences[owner];
        const std::size_t t = next[owner]++;
        ASSERT_LT(t + 1, sequence.tokens.size());
        EXPECT_EQ(batch.input[i], sequence.tokens[t]);
        EXPECT_EQ(batch.target[i], sequence.tokens[t + 1]);
        EXPECT_EQ(batch.weight[i], static_cast<float>(sequence.learned[t + 1]));
        EXPECT_EQ(batch.first[i], i % 64 - t);
        learned += static_cast<double>(batch.weight[i]);
    }
    for (std::size_t s = 0; s < sequences.size(); ++s)
        EXPECT_EQ(next[s] + 1, sequences[s].tokens.size());
    EXPECT_EQ(learned, static_cast<double>(packing.learned()));
    std::size_t places = 0;
    for (const Sequence& sequence : sequences)
        places += sequence.tokens.size() - 1;
    EXPECT_LT(packing.rows() * 64, places * 11 / 10);
}

TEST(Packing, an_epoch_has_every_row_once_and_depends_on_the_seed_alone) {
    const auto sequences = random_sequences(100, 33);
    const Packing packing(all(sequences), 40);
    const std::size_t rows = packing.rows();
    std::multiset<std::size_t> seen;
    for (std::uint64_t step = 0; step < rows; ++step)
        for (const std::size_t row : packing.rows_of(step, 2, 7))
            seen.insert(row);
    for (std::size_t row = 0; row < rows; ++row)
        EXPECT_EQ(seen.count(row), 2U);
    EXPECT_EQ(packing.rows_of(3, 4, 7), packing.rows_of(3, 4, 7));
    EXPECT_NE(packing.rows_of(0, rows, 7), packing.rows_of(0, rows, 8));
}

TEST(SplitExamples, copies_stay_on_one_side) {
    const auto sequences = random_sequences(50, 9);
    std::vector<Example> examples;
    for (std::size_t i = 0; i < 200; ++i) {
        Example example;
        example.better = sequences[i % 50];
        examples.push_back(example);
    }
    const auto [training, held_out] = split_examples(examples, 0.2);
    EXPECT_EQ(held_out.size(), 40U);
    EXPECT_EQ(training.size(), 160U);
    for (const Example* one : held_out)
        for (const Example* other : training)
            EXPECT_NE(one->better.tokens, other->better.tokens);
    EXPECT_EQ(split_examples(examples, 0).second.size(), 0U);
    examples.resize(1);
    EXPECT_EQ(split_examples(examples, 0.5).first.size(), 1U);
}

}  // namespace
}  // namespace molly::train
