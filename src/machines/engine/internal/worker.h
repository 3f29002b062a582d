#pragma once
// One thread that runs what it is given, in order. What is left when it ends is dropped.
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace molly::engine {

class Worker {
public:
    Worker() : thread_([this] { run(); }) {}
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;
    ~Worker() {
        {
            const std::scoped_lock lock(mutex_);
            stopping_ = true;
        }
        news_.notify_one();
        thread_.join();
    }

    void post(std::function<void()> work) {
        {
            const std::scoped_lock lock(mutex_);
            queue_.push_back(std::move(work));
        }
        news_.notify_one();
    }
    std::uint32_t waiting() const {
        const std::scoped_lock lock(mutex_);
        return static_cast<std::uint32_t>(queue_.size());
    }

private:
    void run() {
        std::unique_lock lock(mutex_);
        for (;;) {
            news_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
            if (stopping_) return;
            const auto work = std::move(queue_.front());
            queue_.pop_front();
            lock.unlock();
            work();
            lock.lock();
        }
    }

    mutable std::mutex mutex_;
    std::condition_variable news_;
    bool stopping_ = false;
    std::deque<std::function<void()>> queue_;
    std::thread thread_;
};

}  // namespace molly::engine
