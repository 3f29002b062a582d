#include "engine/internal/reuse.h"

#include <string>

#include <gtest/gtest.h>

namespace molly::engine {
namespace {

TEST(Reuse, CountsFrequencyAndRecency) {
    Reuse reuse(8);
    for (int i = 0; i < 10; ++i)
        reuse.asked("often");
    reuse.asked("once");
    EXPECT_GT(reuse.likelihood("often"), reuse.likelihood("once"));
    EXPECT_EQ(reuse.likelihood("never"), 0);
    // What was wanted long ago gives way to what is wanted now.
    for (int i = 0; i < 40; ++i)
        reuse.asked("now");
    EXPECT_LT(reuse.likelihood("often"), reuse.likelihood("now"));
    EXPECT_GT(reuse.likelihood("often"), reuse.likelihood("once"));
}

TEST(Reuse, WeighsWhatALoadCostsAndFrees) {
    Reuse reuse;
    reuse.asked("a");
    EXPECT_GT(reuse.worth("a", 20, 100), reuse.worth("a", 10, 100));
    EXPECT_GT(reuse.worth("a", 10, 100), reuse.worth("a", 10, 200));
}

TEST(Reuse, ForgetsAfterManyKeys) {
    Reuse reuse;
    for (int i = 0; i < 200'000; ++i)
        reuse.asked(std::to_string(i));
    EXPECT_EQ(reuse.likelihood("0"), 0);
    EXPECT_GT(reuse.likelihood("199999"), 0.9);
}

}  // namespace
}  // namespace molly::engine
