#include "train/internal/lora_pass.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "train/internal/adapter_file.h"
#include "train/internal/kernels.h"
#include "train/internal/test_batch.h"
#include "train/internal/test_family.h"

namespace molly::train {
namespace {

constexpr std::size_t rank = 5;

/// A model of one family with an adapter on all its modules, and a pass over it.
struct Rig {
    explicit Rig(const TestFamily& family, ggml_type type = GGML_TYPE_F32,
                 std::size_t lane_count = 2, Precision precision = Precision::f32, float drop = 0)
        : file(family, type),
          model(FrozenModel::open(file.path()).value()),
          layout(model, rank, parse_modules("all").value()),
          lanes(lane_count),
          pass(model, layout, {rank, 2.0F, drop}, lanes, precision, 2, 80) {
        Random random(9);
        for (std::size_t i = 0; i < layout.size; ++i)
            adapter.push_back(static_cast<float>(random.normal() * 0.1));
    }

    double loss(const std::vector<float>& with, const Batch& batch, std::uint64_t drop_key = 0) {
        pass.forward({with, drop_key}, batch);
        const auto each = pass.losses();
        double sum = 0;
        for (std::size_t i = 0; i < each.size(); ++i)
            sum += static_cast<double>(each[i]) * static_cast<double>(batch.weight[i]);
        return sum;
    }
    std::vector<float> gradient(const Batch& batch, std::uint64_t drop_key = 0) {
        std::vector<float> out(layout.size);
        pass.forward({adapter, drop_key}, batch);
        pass.backward(batch.weight, out);
        return out;
    }

    TestModel file;
    FrozenModel model;
    LoraLayout layout;
    Lanes lanes;
    LoraPass pass;
    std::vector<float> adapter;
};

OwnedBatch batch_of(std::size_t sequences, std::size_t tokens, std::size_t cut) {
    Shape shape;
    shape.vocabulary = 512;
    return random_batch(shape, sequences, tokens, 8, cut);
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
    if (a.size() != b.size()) return 1e9;
    double difference = 0;
    double largest = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        difference = std::max(difference, std::abs(static_cast<double>(a[i] - b[i])));
        largest = std::max(largest, std::abs(static_cast<double>(a[i])));
    }
    return difference / largest;
}

TEST(LoraPass, llama_cpp_computes_the_same_logits_in_every_family) {
    for (const TestFamily& family : test_families()) {
        Rig rig(family);
        const auto owned = batch_of(1, 40, 40);
        rig.pass.forward({}, owned.view());
        EXPECT_LT(largest_difference(rig.pass.logits(), llama_logits(rig.file.path(), owned.input)),
                  family.window > 0 ? 1e-3 : 1e-4)  // its gelu is a table of half precision
            << family.name;
    }
}

TEST(LoraPass, llama_cpp_takes_the_adapter_and_computes_the_same) {
    for (const TestFamily& family : test_families()) {
        Rig rig(family);
        const auto owned = batch_of(1, 40, 40);
        const auto file = rig.file.beside("adapter.gguf");
        const auto written =
            write_adapter(file, rig.layout, rig.adapter, {"test", family.name, "base", 10, ""});
        ASSERT_TRUE(written) << written.error().message();
        const auto rounded = read_adapter(file, rig.layout);
        ASSERT_TRUE(rounded) << rounded.error().message();
        rig.pass.forward({*rounded}, owned.view());
        const auto mine = rig.pass.logits();
        // Its product with half-precision factors rounds the other factor too.
        EXPECT_LT(largest_difference(mine, llama_logits(rig.file.path(), owned.input, file)), 3e-3)
            << family.name;
        EXPECT_GT(largest_difference(mine, llama_logits(rig.file.path(), owned.input)), 3e-2);
    }
}

TEST(LoraPass, quantized_weights_are_read_as_ggml_reads_them) {
    const TestFamily family = test_families()[1];
    for (const ggml_type type : {GGML_TYPE_F16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0, GGML_TYPE_Q5_1}) {
        const TestModel file(family, type);
        const auto model = FrozenModel::open(file.path());
        ASSERT_TRUE(model) << model.error().message();
        const FrozenMatrix& matrix = model->layers()[1][Module::down];
        std::vector<float> mine(matrix.rows * matrix.columns);
        matrix.read(0, matrix.rows, mine.data(), matrix.columns);
        std::vector<float> theirs(mine.size());
        ggml_get_type_traits(type)->to_float(matrix.bytes, theirs.data(),
                                             static_cast<std::int64_t>(theirs.size()));
        EXPECT_LT(largest_difference(mine, theirs), 1e-6) << ggml_type_name(type);
        std::vector<std::uint16_t> rounded(matrix.columns);
        std::vector<std::uint16_t> wanted(matrix.columns);
        std::vector<float> scratch(matrix.columns);
        matrix.read_rounded(3, rounded.data(), scratch.data());
        kernels().to_bf16(matrix.columns, mine.data() + 3 * matrix.columns, wanted.data());
        EXPECT_EQ(rounded, wanted) << ggml_type_name(type);
    }
}

TEST(LoraPass, gradients_agree_with_finite_differences_in_every_family) {
    for (const TestFamily& family : test_families()) {
        Rig rig(family, GGML_TYPE_Q8_0);
        const auto owned = batch_of(2, 70, 9);
        const Batch batch = owned.view();
        const auto gradient = rig.gradient(batch);
        // Along the gradient of each factor the loss must rise by its squared length.
        for (const LoraTensor& tensor : rig.layout.tensors) {
            double square = 0;
            for (std::size_t i = 0; i < tensor.rows * tensor.columns; ++i)
                square += std::pow(static_cast<double>(gradient[tensor.offset + i]), 2);
            ASSERT_GT(square, 0) << tensor.name;
            const double step = 0.02 / std::sqrt(square);
            const auto moved = [&](double by) {
                std::vector<float> there = rig.adapter;
                for (std::size_t i = 0; i < tensor.rows * tensor.columns; ++i)
                    there[tensor.offset + i] +=
                        static_cast<float>(by * static_cast<double>(gradient[tensor.offset + i]));
                return rig.loss(there, batch);
            };
            EXPECT_NEAR((moved(step) - moved(-step)) / (2 * step) / square, 1.0, 0.02)
                << family.name << " " << tensor.name;
        }
    }
}

TEST(LoraPass, dropout_has_the_gradient_of_what_it_kept) {
    Rig rig(test_families()[1], GGML_TYPE_Q8_0, 2, Precision::f32, 0.3F);
    const auto owned = batch_of(2, 40, 9);
    const Batch batch = owned.view();
    const auto gradient = rig.gradient(batch, 77);
    double square = 0;
    for (const float one : gradient)
        square += std::pow(static_cast<double>(one), 2);
    const double step = 0.02 / std::sqrt(square);
    const auto moved = [&](double by) {
        std::vector<float> there = rig.adapter;
        for (std::size_t i = 0; i < there.size(); ++i)
            there[i] += static_cast<float>(by * static_cast<double>(gradient[i]));
        return rig.loss(there, batch, 77);
    };
    EXPECT_NEAR((moved(step) - moved(-step)) / (2 * step) / square, 1.0, 0.02);
    EXPECT_NE(rig.loss(rig.adapter, batch, 77), rig.loss(rig.adapter, batch, 78));
    EXPECT_NE(rig.loss(rig.adapter, batch, 77), rig.loss(rig.adapter, batch, 0));
}

TEST(LoraPass, lanes_and_precision_change_little) {
    const TestFamily family = test_families()[0];
    const auto owned = batch_of(2, 70, 9);
    const auto exact = Rig(family, GGML_TYPE_Q4_0, 1).gradient(owned.view());
    EXPECT_LT(largest_difference(exact, Rig(family, GGML_TYPE_Q4_0, 3).gradient(owned.view())),
              1e-4);
    const auto rounded = Rig(family, GGML_TYPE_Q4_0, 2, Precision::bf16).gradient(owned.view());
    EXPECT_LT(largest_difference(exact, rounded), 5e-2);
    EXPECT_GT(largest_difference(exact, rounded), 0);
}

TEST(LoraPass, a_fresh_adapter_changes_nothing) {
    Rig rig(test_families()[2]);
    const auto owned = batch_of(1, 40, 40);
    rig.pass.forward({}, owned.view());
    const auto bare = rig.pass.logits();
    const auto fresh = make_adapter(rig.layout, 1);
    rig.pass.forward({fresh}, owned.view());
    EXPECT_EQ(bare, rig.pass.logits());
}

TEST(FrozenModel, another_family_is_refused_by_name) {
    TestFamily family;
    family.name = "falcon";
    const TestModel file(family, GGML_TYPE_F32);
    const auto model = FrozenModel::open(file.path());
    ASSERT_FALSE(model);
    EXPECT_EQ(model.error().code(), ErrorCode::unsupported);
    EXPECT_NE(model.error().message().find("falcon"), std::string::npos);
}

TEST(LoraLayout, modules_are_named) {
    EXPECT_EQ(parse_modules("attention")->size(), 4U);
    EXPECT_EQ(*parse_modules("query,down"), (std::set{Module::query, Module::down}));
    EXPECT_FALSE(parse_modules("query,everything"));
    EXPECT_FALSE(parse_modules(""));
}

}  // namespace
}  // namespace molly::train
