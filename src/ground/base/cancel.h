#pragma once
// Cancellation: one flag per logical request, readable from any thread, with callbacks for those
// who sleep.
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace molly {

/// Set once when the caller has gone; layers poll it or subscribe. Shared as
/// shared_ptr<Cancellation>.
class Cancellation {
public:
    bool cancelled() const noexcept { return cancelled_.load(std::memory_order_acquire); }

    /// Sets the flag and runs each callback once, on the calling thread.
    void cancel() {
        std::vector<std::pair<std::uint64_t, std::function<void()>>> callbacks;
        {
            const std::scoped_lock lock(mutex_);
            if (cancelled_.exchange(true, std::memory_order_acq_rel)) return;
            callbacks.swap(callbacks_);
        }
        for (auto& [id, callback] : callbacks)
            callback();
    }

    /// Runs `callback` on cancel (at once if already cancelled). It must be quick and must not
    /// block. Returns an id for `unsubscribe`.
    std::uint64_t subscribe(std::function<void()> callback) {
        {
            const std::scoped_lock lock(mutex_);
            if (!cancelled_.load(std::memory_order_acquire)) {
                callbacks_.emplace_back(++last_id_, std::move(callback));
                return last_id_;
            }
        }
        callback();
        return 0;
    }

    void unsubscribe(std::uint64_t id) {
        const std::scoped_lock lock(mutex_);
        std::erase_if(callbacks_, [id](const auto& entry) { return entry.first == id; });
    }

private:
    std::atomic<bool> cancelled_ = false;
    std::mutex mutex_;
    std::uint64_t last_id_ = 0;
    std::vector<std::pair<std::uint64_t, std::function<void()>>> callbacks_;
};

using CancellationPtr = std::shared_ptr<Cancellation>;

/// Subscribes for the length of a scope.
class CancelSubscription {
public:
    CancelSubscription(CancellationPtr cancellation, std::function<void()> callback)
        : cancellation_(std::move(cancellation)),
          id_(cancellation_ ? cancellation_->subscribe(std::move(callback)) : 0) {}
    CancelSubscription(const CancelSubscription&) = delete;
    CancelSubscription& operator=(const CancelSubscription&) = delete;
    CancelSubscription(CancelSubscription&&) = delete;
    CancelSubscription& operator=(CancelSubscription&&) = delete;
    ~CancelSubscription() {
        if (cancellation_) cancellation_->unsubscribe(id_);
    }

private:
    CancellationPtr cancellation_;
    std::uint64_t id_;
};

}  // namespace molly
