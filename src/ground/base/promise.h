#pragma once
// One value from any thread to one waiting coroutine, which resumes on its own executor.
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/coroutine.h"

namespace molly {

namespace internal {

/// Where one coroutine sleeps until another thread wakes it. `wake` before `wait` is remembered.
class Wakeup {
public:
    /// Suspends until the next `wake`. One waiter at a time.
    Task<void> wait();
    /// Safe from any thread; wakes the waiter on its executor.
    void wake();

private:
    std::mutex mutex_;
    bool woken_ = false;
    std::function<void()> resume_;
};

}  // namespace internal

/// The shared state of one result; hold it as shared_ptr on both sides.
template <class T>
class Promise {
public:
    /// Delivers the value; only the first one counts. Safe from any thread.
    void set(T value) {
        {
            const std::scoped_lock lock(mutex_);
            if (value_) return;
            value_.emplace(std::move(value));
        }
        wakeup_.wake();
    }

    /// Suspends until `set`. Call once.
    Task<T> wait() {
        for (;;) {
            {
                const std::scoped_lock lock(mutex_);
                if (value_) co_return *std::move(value_);
            }
            co_await wakeup_.wait();
        }
    }

private:
    std::mutex mutex_;
    std::optional<T> value_;
    internal::Wakeup wakeup_;
};

}  // namespace molly
