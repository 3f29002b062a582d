// Channels and promises: from any thread to one coroutine.
#include "base/channel.h"

#include <memory>
#include <thread>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include "base/promise.h"

namespace molly {
namespace {

/// An IO thread of its own, joined at the end of the test.
class Loop {
public:
    void start(std::function<Task<void>()> task) {
        spawn(context_.get_executor(), std::move(task));
    }
    /// Runs until every started coroutine has ended.
    void run() {
        guard_.reset();
        thread_.join();
    }

private:
    boost::asio::io_context context_{1};
    boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_{
        context_.get_executor()};
    std::jthread thread_{[this] { context_.run(); }};
};

constexpr int end_of_stream = -1;

TEST(Channel, RefusesWhenFullAndKeepsOrder) {
    Channel<int> channel(2);
    EXPECT_TRUE(channel.has_room());
    EXPECT_TRUE(channel.try_send(1));
    EXPECT_TRUE(channel.try_send(2));
    EXPECT_FALSE(channel.has_room());
    EXPECT_FALSE(channel.try_send(3));
    EXPECT_EQ(channel.try_receive(), 1);
    EXPECT_TRUE(channel.try_send(4));
    EXPECT_EQ(channel.try_receive(), 2);
    EXPECT_EQ(channel.try_receive(), 4);
    EXPECT_EQ(channel.try_receive(), std::nullopt);
}

TEST(Channel, LosesNothingBetweenThreads) {
    const auto channel = std::make_shared<Channel<int>>(4);
    const auto got = std::make_shared<std::vector<int>>();
    Loop loop;
    loop.start([channel, got]() -> Task<void> {
        for (;;) {
            const int value = co_await channel->receive();
            if (value == end_of_stream) co_return;
            got->push_back(value);
        }
    });
    constexpr int count = 400;
    std::jthread producer([channel] {
        for (int i = 0; i <= count; ++i) {
            while (!channel->try_send(i < count ? i : end_of_stream))
                std::this_thread::sleep_for(std::chrono::microseconds(50));
        }
    });
    loop.run();
    ASSERT_EQ(got->size(), static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i)
        EXPECT_EQ((*got)[static_cast<std::size_t>(i)], i);
}

TEST(Channel, WhatWasSentBeforeTheReaderCameArrives) {
    const auto channel = std::make_shared<Channel<std::unique_ptr<int>>>(3);
    EXPECT_TRUE(channel->try_send(std::make_unique<int>(7)));
    EXPECT_TRUE(channel->try_send(std::make_unique<int>(8)));
    const auto sum = std::make_shared<int>(0);
    Loop loop;
    loop.start([channel, sum]() -> Task<void> {
        const auto first = co_await channel->receive();
        const auto second = co_await channel->receive();
        *sum = *first + *second;
    });
    loop.run();
    EXPECT_EQ(*sum, 15);
}

TEST(Promise, DeliversTheFirstValueWheneverItComes) {
    for (const bool early : {true, false}) {
        const auto promise = std::make_shared<Promise<int>>();
        const auto got = std::make_shared<int>(0);
        if (early) promise->set(1);
        Loop loop;
        loop.start([promise, got]() -> Task<void> { *got = co_await promise->wait(); });
        std::jthread setter([promise] {
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
            promise->set(2);
            promise->set(3);
        });
        loop.run();
        EXPECT_EQ(*got, early ? 1 : 2);
    }
}

}  // namespace
}  // namespace molly
