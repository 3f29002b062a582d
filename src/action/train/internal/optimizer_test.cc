#include "train/internal/optimizer.h"

#include <cmath>

#include <gtest/gtest.h>

#include "train/internal/test_batch.h"

namespace molly::train {
namespace {

OptimizerOptions plain_options() {
    OptimizerOptions options;
    options.learning_rate = 1e-2F;
    options.steps = 50;
    options.warm_up_steps = 5;
    return options;
}

TEST(Trainer, learns_a_batch_by_heart) {
    Trainer trainer(small_shape(), 2, 1);
    TrainingState state = trainer.fresh(1);
    const auto owned = random_batch(small_shape(), 4, 16, 2);
    const double first = trainer.step(state, owned.view(), plain_options()).loss;
    double last = first;
    for (int i = 1; i < 50; ++i)
        last = trainer.step(state, owned.view(), plain_options()).loss;
    EXPECT_NEAR(first, std::log(37.0), 0.1);
    EXPECT_LT(last, 1.5);
}

TEST(Trainer, the_same_seed_and_threads_give_the_same_bits) {
    const auto owned = random_batch(small_shape(), 5, 16, 2);
    TrainingState states[2];
    for (TrainingState& state : states) {
        Trainer trainer(small_shape(), 2, 2);
        state = trainer.fresh(9);
        for (int i = 0; i < 5; ++i)
            trainer.step(state, owned.view(), plain_options());
    }
    EXPECT_EQ(states[0].weights, states[1].weights);
    EXPECT_EQ(states[0].second, states[1].second);
}

TEST(Trainer, threads_and_accumulation_change_only_rounding) {
    const auto owned = random_batch(small_shape(), 4, 16, 2);
    Trainer one(small_shape(), 1, 4);
    Trainer many(small_shape(), 3, 1);
    TrainingState a = one.fresh(9);
    TrainingState b = many.fresh(9);
    one.step(a, owned.view(), plain_options());
    many.step(b, owned.view(), plain_options());
    for (std::size_t i = 0; i < one.gradient().size(); ++i)
        ASSERT_NEAR(one.gradient()[i], many.gradient()[i], 1e-6) << i;
}

TEST(Trainer, a_long_gradient_is_shortened) {
    const auto owned = random_batch(small_shape(), 2, 16, 2);
    OptimizerOptions options = plain_options();
    options.gradient_norm_max = 1e-3F;
    options.beta_1 = 0;
    Trainer trainer(small_shape(), 1, 2);
    TrainingState state = trainer.fresh(9);
    const StepReport report = trainer.step(state, owned.view(), options);
    EXPECT_GT(report.gradient_norm, 1e-2);
    double square = 0;
    for (const float value : state.first)
        square += static_cast<double>(value) * static_cast<double>(value);
    EXPECT_NEAR(std::sqrt(square), 1e-3, 1e-6);
}

TEST(Trainer, norms_and_embeddings_do_not_decay) {
    const Layout layout(small_shape(false));
    for (const Tensor& tensor : layout.tensors) {
        const bool plain =
            tensor.name.find("norm") != std::string::npos || tensor.name == "token_embd.weight";
        EXPECT_EQ(tensor.decays, !plain) << tensor.name;
    }
}

TEST(LearningRate, warms_up_and_follows_a_cosine) {
    OptimizerOptions options;
    options.learning_rate = 1;
    options.last_rate_fraction = 0.1F;
    options.warm_up_steps = 10;
    options.steps = 110;
    EXPECT_FLOAT_EQ(learning_rate_at(options, 0), 0.1F);
    EXPECT_FLOAT_EQ(learning_rate_at(options, 9), 1.0F);
    EXPECT_FLOAT_EQ(learning_rate_at(options, 60), 0.55F);
    EXPECT_FLOAT_EQ(learning_rate_at(options, 110), 0.1F);
}

}  // namespace
}  // namespace molly::train
