#include "engine/internal/step_cost.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace molly::engine {

// As llama_batch_allocr::split_equal of the pinned version does it for a cache with a stream for
// each sequence.
std::vector<std::uint32_t> passes_of(std::span<const std::uint32_t> rows) {
    std::vector<std::uint32_t> left(rows.begin(), rows.end());
    std::vector<std::uint32_t> passes;
    std::size_t first = 0;
    for (;;) {
        while (first < left.size() && left[first] == 0)
            ++first;
        if (first == left.size()) return passes;
        std::size_t end = first;
        std::uint32_t each = left[first];
        for (; end < left.size() && left[end] > 0; ++end)
            each = std::min(each, left[end]);
        for (std::size_t place = first; place < end; ++place)
            left[place] -= each;
        passes.push_back(each * static_cast<std::uint32_t>(end - first));
    }
}

std::size_t StepCost::bucket_of(std::uint32_t rows) {
    if (rows <= exact) return rows;
    const double beyond = 4 * std::log2(static_cast<double>(rows) / exact);
    return std::min(buckets - 1, exact + static_cast<std::size_t>(std::ceil(beyond)));
}

double StepCost::rows_of(std::size_t bucket) {
    if (bucket <= exact) return static_cast<double>(bucket);
    return exact * std::exp2(static_cast<double>(bucket - exact) / 4);
}

double StepCost::of(std::uint32_t rows) const {
    const std::size_t wanted = bucket_of(rows);
    if (milliseconds_[wanted] > 0) return milliseconds_[wanted];
    std::size_t below = wanted;
    while (below > 0 && milliseconds_[below] == 0)
        --below;
    std::size_t above = wanted;
    while (above < buckets && milliseconds_[above] == 0)
        ++above;
    if (above == buckets) return milliseconds_[below];
    const double low = rows_of(below);  // no rows take no time
    const double share = (rows_of(wanted) - low) / (rows_of(above) - low);
    return milliseconds_[below] + share * (milliseconds_[above] - milliseconds_[below]);
}

double StepCost::of_all(std::span<const std::uint32_t> passes) const {
    return std::accumulate(passes.begin(), passes.end(), 0.0,
                           [&](double sum, std::uint32_t rows) { return sum + of(rows); });
}

void StepCost::took(std::span<const std::uint32_t> passes, double milliseconds) {
    constexpr double fresh = 0.2;
    constexpr double apart_max = 4;  // a machine that stalls once says little about the next step
    if (milliseconds <= 0) return;
    const double expected = of_all(passes);
    const auto all = static_cast<double>(std::accumulate(passes.begin(), passes.end(), 0U));
    const double ratio = expected > 0 ? milliseconds / expected : 0;
    std::array<double, buckets> next = milliseconds_;
    for (const std::uint32_t rows : passes) {
        const std::size_t bucket = bucket_of(rows);
        if (expected == 0) {
            next[bucket] = milliseconds * rows / all;
        } else if (milliseconds_[bucket] == 0) {
            next[bucket] = of(rows) * ratio;
        } else {
            next[bucket] = milliseconds_[bucket] *
                           (1 + fresh * (std::clamp(ratio, 1 / apart_max, apart_max) - 1));
        }
    }
    milliseconds_ = next;
}

std::vector<std::size_t> holes_to_fill(std::span<const std::uint32_t> rows, const StepCost& cost,
                                       const std::function<bool(std::size_t)>& may_fill) {
    struct Hole {
        std::size_t begin = 0;
        std::size_t end = 0;
    };
    std::vector<Hole> holes;
    std::size_t last = rows.size();
    for (std::size_t place = 0; place < rows.size(); ++place) {
        if (rows[place] == 0) continue;
        if (last < rows.size() && place > last + 1) holes.push_back({last + 1, place});
        last = place;
    }
    // The shortest first: each ends a pass for the fewest rows.
    std::ranges::sort(holes, {}, [](const Hole& hole) { return hole.end - hole.begin; });
    std::vector<std::uint32_t> filled(rows.begin(), rows.end());
    double least = cost.of_all(passes_of(filled));
    std::vector<std::size_t> places;
    for (const Hole& hole : holes) {
        auto tried = filled;
        bool possible = true;
        for (std::size_t place = hole.begin; place < hole.end && possible; ++place) {
            possible = may_fill(place);
            tried[place] = 1;
        }
        const double with = cost.of_all(passes_of(tried));
        if (!possible || with >= least) continue;
        least = with;
        filled = std::move(tried);
        for (std::size_t place = hole.begin; place < hole.end; ++place)
            places.push_back(place);
    }
    std::ranges::sort(places);
    return places;
}

}  // namespace molly::engine
