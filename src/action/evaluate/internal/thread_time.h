#pragma once
// The processor time of this thread: what a busy machine does not stretch.
#include <ctime>

namespace molly::evaluate {

inline double thread_seconds() noexcept {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace molly::evaluate
