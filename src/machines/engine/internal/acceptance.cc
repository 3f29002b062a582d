#include "engine/internal/acceptance.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace molly::engine {

DraftKind copy_kind(std::uint32_t matched) {
    constexpr std::uint32_t middle = 4;
    constexpr std::uint32_t long_one = 8;
    if (matched >= long_one) return DraftKind::copy_long;
    return matched >= middle ? DraftKind::copy_middle : DraftKind::copy_short;
}

double expected_tokens(double rate, std::uint32_t length) {
    double sum = 0;
    double all_came = 1;
    for (std::uint32_t i = 0; i < length; ++i) {
        all_came *= rate;
        sum += all_came;
    }
    return sum;
}

DraftChoice choose_drafts(std::span<const std::uint32_t> rows, std::uint32_t answering,
                          std::span<const DraftOffer> offers, std::uint32_t room,
                          const StepCost& cost, double model_ms) {
    DraftChoice best{.lengths = std::vector<std::uint32_t>(offers.size(), 0), .gain = 1};
    const double plain = cost.of_all(passes_of(rows));
    if (plain == 0 || answering == 0 || offers.empty()) return best;
    best.gain = 0;
    std::vector<std::size_t> order(offers.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
        return offers[a].rate != offers[b].rate ? offers[a].rate > offers[b].rate : a < b;
    });
    const std::uint32_t longest = std::ranges::max(offers, {}, &DraftOffer::most).most;
    for (std::uint32_t length = 1; length <= longest; ++length) {
        std::vector<std::uint32_t> with(rows.begin(), rows.end());
        std::vector<std::uint32_t> lengths(offers.size(), 0);
        std::uint32_t added = 0;
        std::uint32_t by_model = 0;
        double tokens = answering;
        // The most promising first, in numbers that double: what is in between hardly differs.
        for (std::size_t n = 0; n < order.size(); ++n) {
            const std::size_t i = order[n];
            const DraftOffer& offer = offers[i];
            const std::uint32_t more = std::min({length, offer.most, room - added});
            with[offer.place] += more;
            lengths[i] = more;
            added += more;
            tokens += expected_tokens(offer.rate, more);
            if (offer.by_model) by_model = std::max(by_model, more);
            if (!std::has_single_bit(n + 1) && n + 1 < order.size()) continue;
            const double took = cost.of_all(passes_of(with)) + by_model * model_ms;
            const double gain = tokens / answering * plain / took;
            if (gain > best.gain) best = {.lengths = lengths, .gain = gain};
        }
    }
    return best;
}

}  // namespace molly::engine
