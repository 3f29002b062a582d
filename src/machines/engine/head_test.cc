#include "engine/head.h"

#include <fstream>
#include <map>

#include <fmt/format.h>
#include <gguf.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "engine/engine.h"

namespace molly::engine {
namespace {

namespace fs = std::filesystem;

class HeadTest : public ::testing::Test {
protected:
    HeadTest()
        : folder_(fs::temp_directory_path() /
                  fmt::format("molly-head-{}-{}", ::getpid(),
                              ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
        fs::create_directories(folder_);
    }
    ~HeadTest() override {
        std::error_code ignored;
        fs::remove_all(folder_, ignored);
    }
    fs::path out() const { return folder_ / "out.gguf"; }

    fs::path folder_;
};

/// Types by tensor name.
std::map<std::string, std::string> types_of(const fs::path& model) {
    gguf_context* file = gguf_init_from_file(model.c_str(), {.no_alloc = true, .ctx = nullptr});
    std::map<std::string, std::string> types;
    for (std::int64_t i = 0; i < gguf_get_n_tensors(file); ++i)
        types[gguf_get_tensor_name(file, i)] = ggml_type_name(gguf_get_tensor_type(file, i));
    gguf_free(file);
    return types;
}

TEST_F(HeadTest, OnlyTheHeadChanges) {
    const auto change = requantize_head(MOLLY_TEST_MODEL, out(), "Q4_0");
    ASSERT_TRUE(change) << change.error().message();
    auto before = types_of(MOLLY_TEST_MODEL);
    auto after = types_of(out());
    EXPECT_EQ(after["output.weight"], "q4_0");
    EXPECT_EQ(change->to, "q4_0");
    EXPECT_EQ(change->shared, !before.contains("output.weight"));
    EXPECT_LT(change->bytes_after, change->bytes_before);
    before.erase("output.weight");
    after.erase("output.weight");
    EXPECT_EQ(before, after);
    EXPECT_TRUE(Engine::open(out(), {}));
}

TEST_F(HeadTest, SameNumbersPredictTheSame) {
    // f16 to f16 loses nothing, so both files are one model.
    ASSERT_TRUE(requantize_head(MOLLY_TEST_MODEL, out(), "f16"));
    const auto change = compare_predictions(MOLLY_TEST_MODEL, out(), {.text = {}, .tokens = 256});
    ASSERT_TRUE(change) << change.error().message();
    EXPECT_TRUE(change->own_text);
    EXPECT_EQ(change->tokens, 256);
    EXPECT_NEAR(change->nats, 0, 1e-4);
}

TEST_F(HeadTest, FewerBitsCostSomething) {
    ASSERT_TRUE(requantize_head(MOLLY_TEST_MODEL, out(), "q4_0"));
    const auto own = compare_predictions(MOLLY_TEST_MODEL, out(), {.text = {}, .tokens = 512});
    ASSERT_TRUE(own) << own.error().message();
    // On the first file's own text the mean is a divergence, which cannot be below zero but by
    // chance.
    EXPECT_GT(own->nats + own->nats_error, 0);
    EXPECT_NE(own->nats, 0);
    EXPECT_GT(own->perplexity_after, 1);

    std::string text;
    for (int i = 0; i < 200; ++i)
        text += fmt::format("Riga {} di un testo qualunque. ", i);
    std::uint64_t last = 0;
    PredictionOptions options{.text = text, .tokens = 300};
    options.progress = [&last](std::uint64_t done, std::uint64_t total) {
        EXPECT_LE(done, total);
        EXPECT_GE(done, last);
        last = done;
    };
    const auto given = compare_predictions(MOLLY_TEST_MODEL, out(), options);
    ASSERT_TRUE(given) << given.error().message();
    EXPECT_FALSE(given->own_text);
    EXPECT_GE(given->tokens, 300);
    EXPECT_GT(last, 0);
}

TEST_F(HeadTest, RefusesWhatCannotBe) {
    const auto code = [&](const fs::path& model, std::string_view type) {
        const auto change = requantize_head(model, out(), type);
        return change ? ErrorCode::internal : change.error().code();
    };
    EXPECT_EQ(code(MOLLY_TEST_MODEL, "q3"), ErrorCode::invalid_request);
    EXPECT_EQ(code(folder_ / "none.gguf", "q4_0"), ErrorCode::not_found);
    std::ofstream(folder_ / "bad.gguf") << "GGUF and nothing else";
    EXPECT_EQ(code(folder_ / "bad.gguf", "q4_0"), ErrorCode::corrupt);
    EXPECT_FALSE(fs::exists(out()));
    ASSERT_TRUE(requantize_head(MOLLY_TEST_MODEL, out(), "q8_0"));
    const auto short_text = compare_predictions(MOLLY_TEST_MODEL, out(), {.text = "two words"});
    ASSERT_FALSE(short_text);
    EXPECT_EQ(short_text.error().code(), ErrorCode::invalid_request);
}

}  // namespace
}  // namespace molly::engine
