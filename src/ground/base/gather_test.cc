#include "base/gather.h"

#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include "base/coroutine.h"
#include "base/promise.h"

namespace molly {
namespace {

TEST(Gather, RunsAllAtOnceAndWaitsForTheLast) {
    boost::asio::io_context io;
    Promise<bool> second;
    std::string order;
    spawn(io.get_executor(), [&]() -> Task<void> {
        std::vector<std::function<Task<void>()>> tasks;
        // The first one waits for the second: one after the other they would never end.
        tasks.emplace_back([&]() -> Task<void> {
            order += "a";
            co_await second.wait();
            order += "A";
        });
        tasks.emplace_back([&]() -> Task<void> {
            order += "b";
            second.set(true);
            co_return;
        });
        co_await gather(std::move(tasks));
        order += "!";
    });
    io.run();
    EXPECT_EQ(order, "abA!");
}

TEST(Gather, OfNothingEndsAtOnce) {
    boost::asio::io_context io;
    bool ended = false;
    spawn(io.get_executor(), [&]() -> Task<void> {
        std::vector<std::function<Task<void>()>> nothing;
        co_await gather(std::move(nothing));
        ended = true;
    });
    io.run();
    EXPECT_TRUE(ended);
}

}  // namespace
}  // namespace molly
