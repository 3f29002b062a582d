#include "train/full.h"

#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "train/internal/test_family.h"
#include "train/internal/test_rig.h"
#include "train/lora.h"

namespace molly::train {
namespace {

TestFamily plain_llama() {
    TestFamily family = test_families()[0];
    family.slow_frequencies = false;
    return family;
}

struct Rig {
    explicit Rig(const TestFamily& family = plain_llama(), ggml_type type = GGML_TYPE_Q8_0)
        : model(family, type) {
        std::string rows;
        for (int i = 0; i < 40; ++i) {
            rows += fmt::format(R"({{"prompt":"{} {}","completion":"{}","class":"standard"}})",
                                i % 2 == 0 ? "goza" : "tipu", i, i % 2 == 0 ? "lamo" : "bido") +
                    "\n";
        }
        options.base = model.path();
        options.data = model.beside("rows.jsonl");
        std::ofstream(options.data, std::ios::binary) << rows;
        options.out = model.beside("run");
        options.name = "tuned";
        options.precision = "f32";
        options.threads = 2;
        options.learning_rate = 3e-3;
        options.epochs = 8;
        options.batch = 2;
    }

    TestModel model;
    FullOptions options;
    SmallCoder coder;
};

TEST(TrainFull, it_learns_and_llama_cpp_takes_the_file) {
    Rig rig;
    TestWatch watch;
    const auto outcome = train_full(rig.options, rig.coder, watch);
    ASSERT_TRUE(outcome) << outcome.error().message();
    EXPECT_TRUE(outcome->finished);
    EXPECT_EQ(outcome->held_out_rows, 4U);
    EXPECT_EQ(outcome->facts.label_class, "standard");
    EXPECT_LT(outcome->held_out_after, outcome->held_out_before * 0.5);
    const auto tuned = llama_logits(outcome->model, {1, 2, 3});
    ASSERT_FALSE(tuned.empty());
    EXPECT_NE(tuned, llama_logits(rig.model.path(), {1, 2, 3}));
    EXPECT_FALSE(llama_logits(outcome->model.parent_path() / "model-q8_0.gguf", {1}).empty());
    const auto status = read_status(rig.options.out);
    ASSERT_TRUE(status) << status.error().message();
    EXPECT_TRUE(status->finished);
    EXPECT_EQ(status->parameters, outcome->parameters);
    const auto facts = read_facts(rig.options.out);
    ASSERT_TRUE(facts);
    EXPECT_EQ(facts->kind, RunKind::full);
    EXPECT_EQ(facts->base, rig.model.path());
}

TEST(TrainFull, it_starts_from_what_the_base_computes) {
    for (const ggml_type type : {GGML_TYPE_F16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0}) {
        Rig rig(plain_llama(), type);
        rig.options.steps = 1;
        rig.options.learning_rate = 1e-12;
        TestWatch watch;
        const auto outcome = train_full(rig.options, rig.coder, watch);
        ASSERT_TRUE(outcome) << outcome.error().message();
        EXPECT_NEAR(outcome->held_out_before, outcome->held_out_after, 1e-4);
        // The adapter's trainer computes the base by code of its own, block by block.
        LoraOptions adapter;
        static_cast<TuningOptions&>(adapter) = rig.options;
        adapter.out = rig.model.beside("adapter");
        adapter.rank = 1;
        const auto other = train_lora(adapter, rig.coder, watch);
        ASSERT_TRUE(other) << other.error().message();
        EXPECT_NEAR(outcome->held_out_before, other->held_out_base, 1e-4) << "type " << type;
        if (type != GGML_TYPE_F16) continue;  // llama.cpp quantizes activations for the others
        const auto before = llama_logits(rig.model.path(), {1, 2, 3, 4});
        const auto after = llama_logits(outcome->model, {1, 2, 3, 4});
        ASSERT_EQ(before.size(), after.size());
        for (std::size_t i = 0; i < before.size(); ++i)
            ASSERT_NEAR(before[i], after[i], 0.01F) << "logit " << i;
    }
}

TEST(TrainFull, a_stopped_run_goes_on_to_the_same_bytes) {
    Rig rig;
    TestWatch through;
    const auto whole = train_full(rig.options, rig.coder, through);
    ASSERT_TRUE(whole) << whole.error().message();
    rig.options.out = rig.model.beside("stopped");
    TestWatch early(5);
    const auto stopped = train_full(rig.options, rig.coder, early);
    ASSERT_TRUE(stopped) << stopped.error().message();
    EXPECT_FALSE(stopped->finished);
    TestWatch rest;
    const auto resumed = resume_full(rig.options.out, rig.coder, rest);
    ASSERT_TRUE(resumed) << resumed.error().message();
    EXPECT_TRUE(resumed->finished);
    EXPECT_EQ(bytes_of(whole->model), bytes_of(resumed->model));
}

TEST(TrainFull, what_it_cannot_compute_is_refused_by_name) {
    const auto families = test_families();
    const char* parts[] = {"scaled RoPE", "qwen2", "qwen3", "gemma3"};
    for (std::size_t i = 0; i < families.size(); ++i) {
        Rig rig(families[i]);
        TestWatch watch;
        const auto refused = train_full(rig.options, rig.coder, watch);
        ASSERT_FALSE(refused) << families[i].name;
        EXPECT_EQ(refused.error().code(), ErrorCode::unsupported);
        EXPECT_NE(refused.error().message().find(parts[i]), std::string::npos)
            << refused.error().message();
    }
}

TEST(TrainFull, changed_data_is_refused_on_resuming) {
    Rig rig;
    TestWatch early(2);
    ASSERT_TRUE(train_full(rig.options, rig.coder, early));
    std::ofstream(rig.options.data, std::ios::app)
        << R"({"prompt":"goza","completion":"tipu"})" << '\n';
    TestWatch rest;
    const auto resumed = resume_full(rig.options.out, rig.coder, rest);
    ASSERT_FALSE(resumed);
    EXPECT_EQ(resumed.error().code(), ErrorCode::conflict);
}

}  // namespace
}  // namespace molly::train
