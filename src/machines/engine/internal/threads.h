#pragma once
// How many cores this process may really use.
#include <cstdint>

namespace molly::engine {

/// Cores that affinity, the cgroup's quota and the load of the last minute leave, at least 1. One
/// thread too many costs far more than one too few: ggml's threads wait for each other spinning.
std::uint32_t free_cores();

}  // namespace molly::engine
