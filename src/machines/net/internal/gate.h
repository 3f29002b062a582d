#pragma once
// Where one coroutine sleeps until its own IO thread wakes it. Not for use across threads.
#include <functional>
#include <utility>

#include <boost/asio/async_result.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/coroutine.h"

namespace molly::net::internal {

class Gate {
public:
    bool waiting() const noexcept { return static_cast<bool>(resume_); }

    /// Suspends until `open`. One waiter at a time; an `open` before `wait` is not remembered.
    Task<void> wait() {
        auto initiate = [this](auto handler) {
            resume_ = [kept = std::move(handler)]() mutable { std::move(kept)(); };
        };
        return boost::asio::async_initiate<const boost::asio::use_awaitable_t<>&, void()>(
            std::move(initiate), boost::asio::use_awaitable);
    }

    /// Resumes the waiter before it returns; whoever calls must expect to be destroyed by it.
    void open() {
        if (!resume_) return;
        auto resume = std::move(resume_);
        resume_ = nullptr;
        resume();
    }

    /// Drops the waiter without resuming it: its frame is destroyed.
    void abandon() {
        auto dropped = std::move(resume_);
        resume_ = nullptr;
    }

private:
    std::move_only_function<void()> resume_;
};

}  // namespace molly::net::internal
