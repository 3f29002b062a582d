#pragma once
// A wall clock that tests turn by hand.
#include "base/clock.h"
#include "base/coroutine.h"

namespace molly::router {

class HandClock final : public Clock {
public:
    MonoTime now() const noexcept override { return {}; }
    WallTime wall() const noexcept override { return wall_; }
    Task<void> sleep_until(MonoTime /*when*/) override { co_return; }
    void advance(std::chrono::hours by) { wall_ += by; }

private:
    WallTime wall_{std::chrono::hours(500'000)};
};

}  // namespace molly::router
