#pragma once
// Time as a parameter, so that the simulation can own it. Safe from any thread.
#include <chrono>

#include "base/task.h"

namespace molly {

using MonoTime = std::chrono::steady_clock::time_point;
using WallTime = std::chrono::system_clock::time_point;
using Duration = std::chrono::nanoseconds;

/// When a request must be over. It travels with the request; no layer invents its own.
using Deadline = MonoTime;

class Clock {
public:
    virtual ~Clock() = default;
    /// Monotonic time, for durations and deadlines.
    virtual MonoTime now() const noexcept = 0;
    /// Calendar time (UTC), for records.
    virtual WallTime wall() const noexcept = 0;
    /// Suspends the calling coroutine until `when`.
    virtual Task<void> sleep_until(MonoTime when) = 0;
};

/// The machine's clock.
Clock& system_clock();

}  // namespace molly
