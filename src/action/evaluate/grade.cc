#include "evaluate/grade.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "base/assert.h"

namespace molly::evaluate {
namespace {

/// The harmonic mean of precision and recall.
double f1(std::size_t shared, std::size_t expected, std::size_t given) {
    if (expected + given == 0) return 1;
    return 2.0 * static_cast<double>(shared) / static_cast<double>(expected + given);
}

double members_f1(const json::object& expected, const json::object& given) {
    const auto shared = std::ranges::count_if(expected, [&](const auto& member) {
        const auto* value = given.if_contains(member.key());
        return value != nullptr && *value == member.value();
    });
    return f1(static_cast<std::size_t>(shared), expected.size(), given.size());
}

double elements_f1(const json::array& expected, const json::array& given) {
    std::vector<bool> taken(given.size());
    std::size_t shared = 0;
    for (const json::value& wanted : expected) {
        for (std::size_t i = 0; i < given.size(); ++i) {
            if (taken[i] || given[i] != wanted) continue;
            taken[i] = true;
            ++shared;
            break;
        }
    }
    return f1(shared, expected.size(), given.size());
}

/// splitmix64 (Vigna, 2015).
std::uint64_t next(std::uint64_t& state) {
    state += 0x9E3779B97F4A7C15ULL;
    std::uint64_t x = state;
    x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27U)) * 0x94D049BB133111EBULL;
    return x ^ (x >> 31U);
}

}  // namespace

Grade grade(const json::value& expected, std::string_view answer) {
    const auto given = parse_json(answer, {.bytes_max = 1U << 20U, .depth_max = 32});
    if (!given) return {};
    Grade out;
    out.exact = *given == expected;
    out.partial = out.exact ? 1 : 0;
    if (expected.is_object() && given->is_object()) {
        out.partial = members_f1(expected.get_object(), given->get_object());
    } else if (expected.is_array() && given->is_array()) {
        out.partial = elements_f1(expected.get_array(), given->get_array());
    }
    return out;
}

Estimate wilson(std::size_t hits, std::size_t count) {
    if (count == 0) return {.mean = 0, .low = 0, .high = 1};
    constexpr double z = 1.959964;
    const auto n = static_cast<double>(count);
    const double share = static_cast<double>(hits) / n;
    const double scale = 1 + z * z / n;
    const double centre = (share + z * z / (2 * n)) / scale;
    const double half = z * std::sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / scale;
    return {
        .mean = share, .low = std::max(0.0, centre - half), .high = std::min(1.0, centre + half)};
}

std::vector<double> differences(std::span<const double> a, std::span<const double> b) {
    MOLLY_ASSERT(a.size() == b.size());
    std::vector<double> out(a.size());
    std::ranges::transform(a, b, out.begin(), std::minus<>());
    return out;
}

Estimate mean_of_groups(std::span<const std::vector<double>> groups, std::uint64_t seed) {
    constexpr std::size_t samples = 4000;
    std::vector<double> means(samples);
    double mean = 0;
    std::size_t count = 0;
    std::uint64_t state = seed;
    for (const auto& group : groups) {
        if (group.empty()) continue;
        ++count;
        const auto n = static_cast<double>(group.size());
        mean += std::accumulate(group.begin(), group.end(), 0.0) / n;
        for (double& sample : means) {
            double total = 0;
            for (std::size_t i = 0; i < group.size(); ++i)
                total += group[next(state) % group.size()];
            sample += total / n;
        }
    }
    if (count == 0) return {};
    std::ranges::sort(means);
    const auto n = static_cast<double>(count);
    return {.mean = mean / n,
            .low = means[samples / 40] / n,                  // 2.5%
            .high = means[samples - 1 - samples / 40] / n};  // 97.5%
}

}  // namespace molly::evaluate
