#include "train/train.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include "train/internal/checkpoint.h"
#include "train/internal/test_corpus.h"

namespace molly::train {
namespace {

/// Ends a run when it has made `steps` steps.
class StopAfter final : public Watch {
public:
    explicit StopAfter(std::uint64_t steps) : steps_(steps) {}
    void prepare(const char*, std::uint64_t, std::uint64_t) override {}
    void progress(const Progress& now) override {
        if (first_loss == 0) first_loss = now.loss;
        last = now;
        ++reports;
    }
    bool stop() override { return reports >= steps_; }

    std::uint64_t reports = 0;
    double first_loss = 0;
    Progress last;

private:
    std::uint64_t steps_;
};

std::string bytes_of(const std::filesystem::path& file) {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

BaseOptions tiny_options(const TestCorpus& corpus, const char* name) {
    BaseOptions options;
    options.sources = {corpus.source()};
    options.tokenizer = corpus.tokenizer_file();
    options.out = corpus.folder() / name;
    options.preset = "tiny";
    options.name = "molly-unit";
    options.tokens = 60 * 4 * 64;
    options.threads = 2;
    return options;
}

TEST(TrainBase, lowers_the_loss_and_leaves_a_model) {
    const TestCorpus corpus;
    StopAfter watch(~0ULL);
    const auto outcome = train_base(tiny_options(corpus, "run"), watch);
    ASSERT_TRUE(outcome) << outcome.error().message();
    EXPECT_TRUE(outcome->finished);
    EXPECT_EQ(watch.last.step, 60U);
    EXPECT_LT(watch.last.loss, watch.first_loss - 1);
    EXPECT_LT(watch.last.held_out_loss, watch.first_loss - 1);
    ASSERT_EQ(outcome->held_out.size(), 1U);
    EXPECT_GT(outcome->held_out[0].bits_per_byte, 0.1);
    EXPECT_TRUE(std::filesystem::exists(corpus.folder() / "run/model-f16.gguf"));
    EXPECT_TRUE(std::filesystem::exists(corpus.folder() / "run/model-q8_0.gguf"));
}

TEST(TrainBase, a_run_that_was_stopped_goes_on_to_the_same_bytes) {
    const TestCorpus corpus;
    StopAfter whole(~0ULL);
    ASSERT_TRUE(train_base(tiny_options(corpus, "whole"), whole));
    StopAfter early(17);
    const auto stopped = train_base(tiny_options(corpus, "parts"), early);
    ASSERT_TRUE(stopped) << stopped.error().message();
    EXPECT_FALSE(stopped->finished);
    StopAfter again(20);
    ASSERT_TRUE(resume(corpus.folder() / "parts", again));
    StopAfter rest(~0ULL);
    const auto finished = resume(corpus.folder() / "parts", rest);
    ASSERT_TRUE(finished) << finished.error().message();
    EXPECT_TRUE(finished->finished);
    for (const char* file : {"checkpoint.bin", "model-f16.gguf", "model-q8_0.gguf"}) {
        EXPECT_EQ(bytes_of(corpus.folder() / "whole" / file),
                  bytes_of(corpus.folder() / "parts" / file))
            << file;
    }
}

TEST(TrainBase, a_folder_that_holds_a_run_is_refused) {
    const TestCorpus corpus;
    StopAfter watch(1);
    ASSERT_TRUE(train_base(tiny_options(corpus, "run"), watch));
    const auto again = train_base(tiny_options(corpus, "run"), watch);
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().code(), ErrorCode::conflict);
}

TEST(TrainBase, a_changed_text_stops_a_resumption) {
    const TestCorpus corpus;
    StopAfter watch(1);
    ASSERT_TRUE(train_base(tiny_options(corpus, "run"), watch));
    corpus.change();
    const auto again = resume(corpus.folder() / "run", watch);
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().code(), ErrorCode::conflict);
}

TEST(TrainBase, a_damaged_checkpoint_is_noticed) {
    const TestCorpus corpus;
    StopAfter watch(3);
    ASSERT_TRUE(train_base(tiny_options(corpus, "run"), watch));
    const auto file = corpus.folder() / "run/checkpoint.bin";
    std::string bytes = bytes_of(file);
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
    std::ofstream(file, std::ios::binary) << bytes;
    const auto again = resume(corpus.folder() / "run", watch);
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().code(), ErrorCode::corrupt);
}

TEST(TrainBase, patience_ends_a_run_that_learns_nothing_more) {
    const TestCorpus corpus;
    auto options = tiny_options(corpus, "run");
    options.learning_rate = 1e-9;
    options.patience = 3;
    StopAfter watch(~0ULL);
    const auto outcome = train_base(options, watch);
    ASSERT_TRUE(outcome) << outcome.error().message();
    EXPECT_TRUE(outcome->finished);
    EXPECT_LT(watch.last.step, 10U);
}

TEST(Status, tells_how_far_a_run_is) {
    const TestCorpus corpus;
    StopAfter watch(10);
    ASSERT_TRUE(train_base(tiny_options(corpus, "run"), watch));
    const auto status = read_status(corpus.folder() / "run");
    ASSERT_TRUE(status) << status.error().message();
    EXPECT_EQ(status->name, "molly-unit");
    EXPECT_EQ(status->checkpoint, 10U);
    EXPECT_EQ(status->last.step, 10U);
    EXPECT_EQ(status->last.steps, 60U);
    EXPECT_FALSE(status->finished);
    EXPECT_FALSE(status->running);
    EXPECT_EQ(read_status(corpus.folder()).error().code(), ErrorCode::not_found);
}

}  // namespace
}  // namespace molly::train
