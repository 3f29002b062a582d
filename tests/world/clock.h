#pragma once
// Time that moves only when everybody sleeps. One thread.
#include <map>
#include <memory>

#include "base/clock.h"
#include "base/coroutine.h"
#include "base/promise.h"

namespace molly::world {

class SimulatedClock final : public Clock {
public:
    MonoTime now() const noexcept override { return now_; }
    WallTime wall() const noexcept override {
        return WallTime(std::chrono::hours(500'000)) +
               std::chrono::duration_cast<WallTime::duration>(now_ - MonoTime());
    }
    Task<void> sleep_until(MonoTime when) override;
    Task<void> sleep(Duration duration) { return sleep_until(now_ + duration); }

    /// Moves to the earliest sleeper and wakes it. False when nobody sleeps.
    bool advance();
    /// Moves without waking: for tests that run nothing meanwhile.
    void skip(Duration duration) { now_ += duration; }

private:
    MonoTime now_{std::chrono::hours(1)};
    std::multimap<MonoTime, std::shared_ptr<Promise<bool>>> sleepers_;
};

}  // namespace molly::world
