#pragma once
// What both trainers' measurements are set against.
#include <cstddef>
#include <vector>

#include <sys/resource.h>

#include "train/internal/lanes.h"
#include "train/internal/matmul.h"

/// What all threads together reach in products.
inline double peak_gflops(std::size_t threads, molly::train::Precision precision) {
    molly::train::Lanes lanes(threads);
    std::vector<double> each(threads);
    lanes.run([&](std::size_t lane) { each[lane] = molly::train::measure_matmul_peak(precision); });
    double sum = 0;
    for (const double one : each)
        sum += one;
    return sum;
}

/// Of this process, on all its threads.
inline double cpu_seconds() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}
