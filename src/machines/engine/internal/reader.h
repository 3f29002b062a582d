#pragma once
// The reading end of a request's stream.
#include <atomic>
#include <memory>
#include <utility>

#include "engine/internal/job.h"
#include "engine/internal/runner.h"

namespace molly::engine {

/// Wakes the engine thread, if there still is one.
inline void nudge(const std::weak_ptr<Runner>& runner) {
    if (const auto alive = runner.lock()) alive->nudge();
}

/// Tells the engine thread that nobody reads any more, however that comes.
class Reader {
public:
    Reader(std::shared_ptr<Stream> stream, std::weak_ptr<Runner> runner)
        : stream_(std::move(stream)), runner_(std::move(runner)) {}
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;
    ~Reader() { give_up(); }

    void give_up() const {
        stream_->abandoned.store(true, std::memory_order_release);
        nudge(runner_);
    }
    /// Counts one event as read; a sequence that was paused for it goes on.
    void took_one() const {
        const std::uint32_t before = stream_->unread.fetch_sub(1, std::memory_order_acq_rel);
        if (before == Stream::events_max) nudge(runner_);
    }

private:
    std::shared_ptr<Stream> stream_;
    std::weak_ptr<Runner> runner_;
};

}  // namespace molly::engine
