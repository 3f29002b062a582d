#include "evaluate/curves.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace molly::evaluate {
namespace {

std::vector<std::uint32_t> order_of(std::span<const double> ranks) {
    std::vector<std::uint32_t> order(ranks.size());
    std::iota(order.begin(), order.end(), 0U);
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
        return ranks[a] != ranks[b] ? ranks[a] > ranks[b] : a < b;
    });
    return order;
}

}  // namespace

Curve curve_of(std::span<const double> ranks, std::span<const double> gains) {
    Curve curve;
    const double gap = std::accumulate(gains.begin(), gains.end(), 0.0);
    if (gains.empty() || !(gap > 0)) return curve;
    const auto count = static_cast<double>(gains.size());
    double recovered = 0;
    double area = 0;
    bool half = false;
    bool most = false;
    std::size_t tenth = 1;
    std::size_t done = 0;
    for (const std::uint32_t at : order_of(ranks)) {
        const double before = recovered;
        recovered += gains[at] / gap;
        area += (before + recovered) / 2;
        const double share = static_cast<double>(++done) / count;
        if (!half && recovered >= 0.5 - 1e-9) curve.cpt50 = share;
        if (!most && recovered >= 0.8 - 1e-9) curve.cpt80 = share;
        half = half || recovered >= 0.5 - 1e-9;
        most = most || recovered >= 0.8 - 1e-9;
        while (tenth < curve.recovered.size() && share * 10 >= static_cast<double>(tenth) - 1e-9)
            curve.recovered[tenth++] = recovered;
    }
    curve.apgr = area / count;
    return curve;
}

Interval bootstrap_apgr(std::span<const double> ranks, std::span<const double> gains,
                        std::uint32_t rounds) {
    // Drawing again only changes how often each prompt stands in the one order.
    const std::vector<std::uint32_t> order = order_of(ranks);
    std::mt19937_64 random(20260630);
    std::vector<double> areas;
    std::vector<std::uint32_t> times(gains.size());
    for (std::uint32_t round = 0; round < rounds; ++round) {
        std::fill(times.begin(), times.end(), 0U);
        for (std::size_t i = 0; i < gains.size(); ++i)
            ++times[random() % gains.size()];
        double gap = 0;
        double area = 0;
        for (const std::uint32_t at : order) {
            for (std::uint32_t i = 0; i < times[at]; ++i) {
                area += gap + gains[at] / 2;
                gap += gains[at];
            }
        }
        if (gap > 0) areas.push_back(area / gap / static_cast<double>(gains.size()));
    }
    if (areas.empty()) return {};
    std::sort(areas.begin(), areas.end());
    const auto at = [&](double share) {
        return areas[static_cast<std::size_t>(share * static_cast<double>(areas.size() - 1))];
    };
    return {.low = at(0.025), .high = at(0.975)};
}

double average_quality(std::vector<std::pair<double, double>> points) {
    std::sort(points.begin(), points.end());
    std::vector<std::pair<double, double>> hull;
    for (const auto& point : points) {
        while (hull.size() >= 2) {
            const auto& a = hull[hull.size() - 2];
            const auto& b = hull.back();
            const double turn = (b.first - a.first) * (point.second - a.second) -
                                (b.second - a.second) * (point.first - a.first);
            if (turn < 0) break;
            hull.pop_back();
        }
        hull.push_back(point);
    }
    // Who pays more need not take the worse answer.
    for (std::size_t i = 1; i < hull.size(); ++i)
        hull[i].second = std::max(hull[i].second, hull[i - 1].second);
    const double span = hull.empty() ? 0 : hull.back().first - hull.front().first;
    if (span <= 0) return hull.empty() ? 0 : hull.back().second;
    double area = 0;
    for (std::size_t i = 1; i < hull.size(); ++i) {
        area += (hull[i].second + hull[i - 1].second) / 2 * (hull[i].first - hull[i - 1].first);
    }
    return area / span;
}

}  // namespace molly::evaluate
