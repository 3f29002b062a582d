#include "train/lora.h"

#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "train/internal/test_family.h"
#include "train/internal/test_rig.h"

namespace molly::train {
namespace {

struct Rig {
    Rig() {
        std::string rows;
        std::string pairs;
        for (int i = 0; i < 40; ++i) {
            const char* answer = i % 2 == 0 ? "lamo" : "bido";
            const char* other = i % 2 == 0 ? "bido" : "lamo";
            const std::string prompt = fmt::format("{} {}", i % 2 == 0 ? "goza" : "tipu", i);
            rows += fmt::format(R"({{"prompt":"{}","completion":"{}"}})", prompt, answer) + "\n";
            pairs += fmt::format(R"({{"prompt":"{}","chosen":"{}","rejected":"{}"}})", prompt,
                                 answer, other) +
                     "\n";
        }
        options.base = model.path();
        options.data = write("rows.jsonl", rows);
        pair_data = write("pairs.jsonl", pairs);
        options.out = model.beside("run");
        options.name = "test";
        options.rank = 4;
        options.precision = "f32";
        options.threads = 2;
        options.learning_rate = 5e-3;
        options.epochs = 6;
        options.dropout = 0.1;
    }
    std::filesystem::path write(const char* name, const std::string& text) const {
        std::ofstream(model.beside(name), std::ios::binary) << text;
        return model.beside(name);
    }

    TestModel model{test_families()[0], GGML_TYPE_Q8_0};
    std::filesystem::path pair_data;
    LoraOptions options;
    SmallCoder coder;
};

TEST(TrainLora, it_learns_and_llama_cpp_takes_the_file) {
    Rig rig;
    TestWatch watch;
    const auto outcome = train_lora(rig.options, rig.coder, watch);
    ASSERT_TRUE(outcome) << outcome.error().message();
    EXPECT_TRUE(outcome->finished);
    EXPECT_EQ(outcome->held_out_rows, 4U);
    EXPECT_LT(outcome->held_out_adapter, outcome->held_out_base * 0.5);
    EXPECT_EQ(outcome->base_hash.size(), 64U);
    const auto status = read_status(rig.options.out);
    ASSERT_TRUE(status) << status.error().message();
    EXPECT_TRUE(status->finished);
    EXPECT_EQ(status->last.step, outcome->last.step);
    EXPECT_EQ(status->parameters, outcome->parameters);
    const auto with = llama_logits(rig.model.path(), {1, 2, 3}, outcome->adapter);
    ASSERT_FALSE(with.empty());
    EXPECT_NE(with, llama_logits(rig.model.path(), {1, 2, 3}));
}

TEST(TrainLora, a_stopped_run_goes_on_to_the_same_bytes) {
    for (const Method method : {Method::answers, Method::pairs}) {
        Rig rig;
        rig.options.method = method;
        if (method == Method::pairs) rig.options.data = rig.pair_data;
        TestWatch through;
        const auto whole = train_lora(rig.options, rig.coder, through);
        ASSERT_TRUE(whole) << whole.error().message();
        rig.options.out = rig.model.beside("stopped");
        TestWatch early(5);
        const auto stopped = train_lora(rig.options, rig.coder, early);
        ASSERT_TRUE(stopped) << stopped.error().message();
        EXPECT_FALSE(stopped->finished);
        TestWatch rest;
        const auto resumed = resume_lora(rig.options.out, rig.coder, rest);
        ASSERT_TRUE(resumed) << resumed.error().message();
        EXPECT_TRUE(resumed->finished);
        EXPECT_EQ(bytes_of(whole->adapter), bytes_of(resumed->adapter));
        EXPECT_EQ(whole->held_out_adapter, resumed->held_out_adapter);
    }
}

TEST(TrainLora, preferences_move_the_held_out_pairs) {
    Rig rig;
    rig.options.method = Method::pairs;
    rig.options.data = rig.pair_data;
    rig.options.dropout = 0;
    TestWatch watch;
    const auto outcome = train_lora(rig.options, rig.coder, watch);
    ASSERT_TRUE(outcome) << outcome.error().message();
    EXPECT_NEAR(outcome->held_out_base, 0.6931, 1e-3);
    EXPECT_LT(outcome->held_out_adapter, 0.6);
    EXPECT_EQ(outcome->accuracy, 1.0);
}

TEST(TrainLora, an_adapter_can_be_gone_on_from) {
    Rig rig;
    TestWatch watch;
    const auto first = train_lora(rig.options, rig.coder, watch);
    ASSERT_TRUE(first);
    rig.options.from = first->adapter;
    rig.options.out = rig.model.beside("second");
    rig.options.steps = 1;
    rig.options.learning_rate = 1e-6;
    const auto second = train_lora(rig.options, rig.coder, watch);
    ASSERT_TRUE(second) << second.error().message();
    EXPECT_NEAR(second->held_out_adapter, first->held_out_adapter, 0.05);
    rig.options.rank = 8;
    rig.options.out = rig.model.beside("third");
    const auto third = train_lora(rig.options, rig.coder, watch);
    ASSERT_FALSE(third);
    EXPECT_EQ(third.error().code(), ErrorCode::conflict);
}

TEST(TrainLora, changed_data_is_refused_on_resuming) {
    Rig rig;
    TestWatch early(2);
    ASSERT_TRUE(train_lora(rig.options, rig.coder, early));
    std::ofstream(rig.options.data, std::ios::app)
        << R"({"prompt":"goza","completion":"tipu"})" << '\n';
    TestWatch rest;
    const auto resumed = resume_lora(rig.options.out, rig.coder, rest);
    ASSERT_FALSE(resumed);
    EXPECT_EQ(resumed.error().code(), ErrorCode::conflict);
}

TEST(TrainLora, what_cannot_be_trained_is_refused_at_once) {
    Rig rig;
    TestWatch watch;
    rig.options.rank = 300;
    EXPECT_EQ(train_lora(rig.options, rig.coder, watch).error().code(), ErrorCode::invalid_request);
    rig.options.rank = 4;
    rig.options.data = rig.model.beside("missing.jsonl");
    EXPECT_EQ(train_lora(rig.options, rig.coder, watch).error().code(), ErrorCode::not_found);
    rig.options.data = rig.write("bad.jsonl", "{\"prompt\":\"goza\"}\n");
    const auto bad = train_lora(rig.options, rig.coder, watch);
    EXPECT_EQ(bad.error().code(), ErrorCode::invalid_request);
    EXPECT_NE(bad.error().message().find("line 1"), std::string::npos) << bad.error().message();
}

TEST(AdapterSizes, grow_with_the_rank) {
    const Rig rig;
    const auto sizes = adapter_sizes(rig.model.path(), "all");
    ASSERT_TRUE(sizes);
    ASSERT_EQ(sizes->ranks.size(), 5U);
    EXPECT_EQ(sizes->ranks[1].parameters, 2 * sizes->ranks[0].parameters);
    EXPECT_EQ(sizes->ranks[0].bytes_f16, 2 * sizes->ranks[0].parameters);
    EXPECT_FALSE(adapter_sizes(rig.model.path(), "nothing"));
}

}  // namespace
}  // namespace molly::train
