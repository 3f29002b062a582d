#include "engine/internal/threads.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <thread>

#include <sched.h>

namespace molly::engine {
namespace {

double cores_by_affinity() {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
    return std::max(1U, std::thread::hardware_concurrency());
}

/// The quota of control groups version 2, in cores; no quota: `otherwise`.
double cores_by_quota(double otherwise) {
    std::ifstream file("/sys/fs/cgroup/cpu.max");
    double quota = 0;
    double period = 0;
    return file >> quota >> period && period > 0 ? quota / period : otherwise;
}

double load_of_last_minute() {
    std::ifstream file("/proc/loadavg");
    double load = 0;
    return file >> load ? load : 0;
}

}  // namespace

std::uint32_t free_cores() {
    const double allowed = std::min(cores_by_affinity(), cores_by_quota(cores_by_affinity()));
    const double left = std::floor(allowed - load_of_last_minute() + 0.5);
    return static_cast<std::uint32_t>(std::clamp(left, 1.0, std::max(1.0, allowed)));
}

}  // namespace molly::engine
