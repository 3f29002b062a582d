#pragma once
// A bounded queue from any thread to one coroutine. The end of a stream is a message of T, never a
// close: a closed queue would have to drop or to keep what is buffered, and both have lost tokens
// before.
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "base/promise.h"

namespace molly {

/// Many producers on any thread, one consumer coroutine. Hold it as shared_ptr on both sides.
template <class T>
class Channel {
public:
    explicit Channel(std::size_t capacity_max) : capacity_max_(capacity_max) {}

    /// False when the queue is full: the producer pauses and tries again later.
    bool try_send(T value) {
        {
            const std::scoped_lock lock(mutex_);
            if (queue_.size() >= capacity_max_) return false;
            queue_.push_back(std::move(value));
        }
        wakeup_.wake();
        return true;
    }

    /// Room for one more value at this moment; exact for a single producer.
    bool has_room() const {
        const std::scoped_lock lock(mutex_);
        return queue_.size() < capacity_max_;
    }

    /// Suspends until a value arrives.
    Task<T> receive() {
        for (;;) {
            if (auto value = try_receive()) co_return *std::move(value);
            co_await wakeup_.wait();
        }
    }

    /// The next value if there is one.
    std::optional<T> try_receive() {
        const std::scoped_lock lock(mutex_);
        if (queue_.empty()) return std::nullopt;
        std::optional<T> value(std::move(queue_.front()));
        queue_.pop_front();
        return value;
    }

private:
    const std::size_t capacity_max_;
    mutable std::mutex mutex_;
    std::deque<T> queue_;
    internal::Wakeup wakeup_;
};

}  // namespace molly
