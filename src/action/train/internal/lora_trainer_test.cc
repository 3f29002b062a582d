#include "train/internal/lora_trainer.h"

#include <cmath>

#include <gtest/gtest.h>

#include "train/internal/test_family.h"

namespace molly::train {
namespace {

constexpr std::size_t context = 40;

struct Rig {
    explicit Rig(std::size_t rows_at_once)
        : file(test_families()[1], GGML_TYPE_Q8_0),
          model(FrozenModel::open(file.path()).value()),
          layout(model, 4, parse_modules("all").value()),
          trainer(model, layout, {4, 2.0F, 0}, 2, Precision::f32, rows_at_once, context) {
        Random random(9);
        state = trainer.fresh(1);
        for (float& weight : state.weights)
            weight = static_cast<float>(random.normal() * 0.1);
        for (std::size_t i = 0; i < 6; ++i) {
            Sequence sequence;
            for (std::size_t t = 0; t < 8 + 3 * i; ++t) {
                sequence.tokens.push_back(static_cast<Token>(random.below(500)));
                sequence.learned.push_back(t > 4 ? 1 : 0);
            }
            sequences.push_back(std::move(sequence));
        }
        options.learning_rate = 1e-3F;
        options.steps = 100;
        options.decay = 0;
    }

    PackedBatch batch() const {
        std::vector<const Sequence*> all;
        for (const Sequence& sequence : sequences)
            all.push_back(&sequence);
        const Packing packing(all, context);
        std::vector<std::size_t> rows;
        for (std::size_t r = 0; r < packing.rows(); ++r)
            rows.push_back(r);
        return packing.batch(rows);
    }

    TestModel file;
    FrozenModel model;
    LoraLayout layout;
    LoraTrainer trainer;
    TrainingState state;
    std::vector<Sequence> sequences;
    OptimizerOptions options;
};

TEST(LoraTrainer, answers_become_likelier_and_parts_change_nothing) {
    Rig whole(8);
    Rig parts(1);
    const PackedBatch batch = whole.batch();
    ASSERT_GT(batch.rows, 2U);
    const double before = whole.trainer.evaluate(whole.state.weights, batch);
    const StepReport one = whole.trainer.step(whole.state, batch, whole.options, 0);
    const StepReport two = parts.trainer.step(parts.state, batch, parts.options, 0);
    EXPECT_NEAR(one.loss, before, 1e-5 * before);
    EXPECT_NEAR(one.loss, two.loss, 1e-5 * before);
    EXPECT_NEAR(one.gradient_norm, two.gradient_norm, 1e-4 * one.gradient_norm);
    for (int i = 0; i < 20; ++i)
        whole.trainer.step(whole.state, batch, whole.options, 0);
    EXPECT_LT(whole.trainer.evaluate(whole.state.weights, batch), before - 0.1);
}

TEST(LoraTrainer, the_preference_gradient_agrees_with_differences) {
    for (const float sft_weight : {0.0F, 0.5F}) {
        Rig rig(8);
        const PackedBatch batch = rig.batch();
        std::vector<double> reference(6);
        rig.trainer.score({}, batch, reference);
        PairOptions pairs;
        pairs.beta = 0.3F;
        pairs.sft_weight = sft_weight;
        const std::vector<float> weights = rig.state.weights;
        rig.trainer.step(rig.state, batch, reference, pairs, rig.options);
        const std::vector<float> gradient(rig.trainer.gradient().begin(),
                                          rig.trainer.gradient().end());
        double square = 0;
        for (const float one : gradient)
            square += std::pow(static_cast<double>(one), 2);
        const double step = 0.01 / std::sqrt(square);
        const auto moved = [&](double by) {
            std::vector<float> there = weights;
            for (std::size_t i = 0; i < there.size(); ++i)
                there[i] += static_cast<float>(by * static_cast<double>(gradient[i]));
            return rig.trainer.evaluate(there, batch, reference, pairs).loss;
        };
        EXPECT_NEAR((moved(step) - moved(-step)) / (2 * step) / square, 1.0, 0.02);
    }
}

TEST(LoraTrainer, preferences_are_learned_in_parts_too) {
    Rig rig(1);
    const PackedBatch batch = rig.batch();
    std::vector<double> reference(6);
    rig.trainer.score({}, batch, reference);
    rig.state = rig.trainer.fresh(1);
    const PairOptions pairs;
    const double before = rig.trainer.evaluate(rig.state.weights, batch, reference, pairs).loss;
    EXPECT_NEAR(before, std::log(2.0), 1e-6);  // a fresh adapter is the reference
    PairReport last;
    for (int i = 0; i < 40; ++i)
        last = rig.trainer.step(rig.state, batch, reference, pairs, rig.options);
    EXPECT_LT(last.loss, before - 0.05);
    EXPECT_EQ(last.accuracy, 1.0);
}

}  // namespace
}  // namespace molly::train
