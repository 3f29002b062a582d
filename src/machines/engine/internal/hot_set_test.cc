// Adapters that wait for room beside requests that need memory to come to their end.
#include "engine/internal/hot_set.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include <gtest/gtest.h>

#include "engine/internal/test_adapter.h"

namespace molly::engine {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): the cast of these tests

constexpr std::uint64_t plenty = std::uint64_t{4} << 20U;

std::vector<LinearLayer> layers() {
    std::vector<LinearLayer> layers;
    for (const TestWeight& weight : all_weights())
        layers.push_back({.name = weight.name,
                          .in = static_cast<std::uint64_t>(weight.in),
                          .out = static_cast<std::uint64_t>(weight.out),
                          .usable = true});
    return layers;
}

/// Whether it came to be so within ten seconds.
bool soon(const std::function<bool()>& so) {
    for (int i = 0; i < 2000; ++i) {
        if (so()) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
}

/// The holder of one adapter runs; the rest of the memory is taken but for what is left of one.
class HotSetWaits : public ::testing::Test {
protected:
    AdapterUse adapter(std::uint32_t seed, std::int64_t rank) {
        return write_adapter(folder_, "w" + std::to_string(seed), {.seed = seed, .rank = rank});
    }
    std::vector<AdapterHold> take(std::vector<AdapterUse> uses) {
        auto held = set_->take(uses, [this] { return !gone_; });
        EXPECT_TRUE(held || gone_) << held.error().message();
        return held ? *std::move(held) : std::vector<AdapterHold>();
    }
    void take_all_but(std::uint64_t bytes) {
        taken_ = plenty - budget_->used() - bytes;
        ASSERT_TRUE(budget_->take(taken_));
    }
    /// While `uses` wait for room, the one that runs gets `bytes`, and they theirs after its end.
    void expect_both_end(std::vector<AdapterHold> running, std::vector<AdapterUse> uses,
                         std::uint64_t bytes) {
        std::vector<AdapterHold> got;
        std::thread loader([&] { got = take(uses); });
        EXPECT_TRUE(soon([&] { return set_->state().waiting == 1; }));
        // As whoever runs does it.
        EXPECT_TRUE(soon([&] {
            set_->yield_room(bytes);
            return budget_->take(bytes);
        })) << "nobody comes to an end";
        running.clear();
        budget_->give_back(bytes + taken_);
        if (!soon([&] { return set_->state().waiting == 0; })) gone_ = true;
        loader.join();
        EXPECT_EQ(got.size(), uses.size());
    }

    TestFolder folder_;
    std::shared_ptr<MemoryBudget> budget_ = std::make_shared<MemoryBudget>(plenty);
    std::shared_ptr<HotSet> set_ = *HotSet::make(layers(), plenty, budget_);
    std::uint64_t taken_ = 0;
    std::atomic<bool> gone_ = false;
};

TEST_F(HotSetWaits, MemoryAtHandIsGivenToWhoRuns) {
    auto running = take({adapter(1, 16)});
    const std::uint64_t before = set_->state().bytes;
    take({adapter(2, 16)});  // hot, and held by nobody
    const std::uint64_t idle = set_->state().bytes - before;
    take_all_but(1024);
    expect_both_end(std::move(running), {adapter(3, 64)}, idle);
}

TEST_F(HotSetWaits, HotOnesAmongThoseAskedForAreGivenToWhoRuns) {
    auto running = take({adapter(1, 16)});
    const std::uint64_t before = set_->state().bytes;
    const AdapterUse hot = adapter(2, 16);
    take({hot});
    const std::uint64_t idle = set_->state().bytes - before;
    take_all_but(1024);
    expect_both_end(std::move(running), {hot, adapter(3, 16)}, idle);
}

}  // namespace
}  // namespace molly::engine
