#pragma once
// Exact graders of JSON answers, and how certain their means are. Pure.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace molly::evaluate {

struct Grade {
    bool exact = false;  ///< the same value; objects in any order of their members
    double partial = 0;  ///< F1 over the members of an object or the elements of a list, else exact
};

/// Grades an answer's text; one that is no JSON is wrong.
Grade grade(const json::value& expected, std::string_view answer);

/// A mean and its 95% interval.
struct Estimate {
    double mean = 0;
    double low = 0;
    double high = 0;
};

/// Of a share (Wilson, 1927).
Estimate wilson(std::size_t hits, std::size_t count);

/// a[i] - b[i]; both have the same length.
std::vector<double> differences(std::span<const double> a, std::span<const double> b);

/// Of the mean over groups of each group's mean, by a bootstrap within each group; the seed decides
/// the samples. Groups that hold nothing are left out.
Estimate mean_of_groups(std::span<const std::vector<double>> groups, std::uint64_t seed);

}  // namespace molly::evaluate
