#pragma once
// What an order of prompts is worth, when the strong model answers the first of them and the weak
// one the others. Definitions as RouteLLM's (arXiv 2406.18665) and RouterBench's. Pure.
#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace molly::evaluate {

struct Interval {
    double low = 0;
    double high = 0;
};

/// `ranks` sends the prompts of the highest values to the strong model first; `gains` are strong
/// minus weak.
struct Curve {
    double apgr = 0;   ///< area under the share of the gap that is recovered; random: 0.5
    double cpt50 = 1;  ///< share of strong calls that recovers half of the gap
    double cpt80 = 1;
    std::array<double, 11> recovered{};  ///< at 0, 10, ..., 100 % of strong calls
};
Curve curve_of(std::span<const double> ranks, std::span<const double> gains);

/// 95 % of the areas when the prompts are drawn again with replacement. Deterministic.
Interval bootstrap_apgr(std::span<const double> ranks, std::span<const double> gains,
                        std::uint32_t rounds);

/// RouterBench's average improvement in quality: mean height of the upper hull of (cost, quality)
/// points, between the lowest and the highest cost.
double average_quality(std::vector<std::pair<double, double>> points);

}  // namespace molly::evaluate
