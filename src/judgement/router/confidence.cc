#include "router/confidence.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace molly::router {
namespace {

constexpr double bins = Confidences::bins;

double middle_of(std::size_t bin) noexcept {
    return (static_cast<double>(bin) + 0.5) / bins;
}

/// Makes values rise: neighbours that fall become their mean, by weight.
template <class Curve>
void make_rising(Curve& values, const Curve& weights) {
    struct Run {
        double mean;
        double weight;
        std::size_t count;
    };
    std::vector<Run> runs;
    for (std::size_t i = 0; i < values.size(); ++i) {
        runs.push_back({values[i], weights[i], 1});
        while (runs.size() > 1 && runs[runs.size() - 2].mean > runs.back().mean) {
            const Run last = runs.back();
            runs.pop_back();
            Run& before = runs.back();
            before.mean = (before.mean * before.weight + last.mean * last.weight) /
                          (before.weight + last.weight);
            before.weight += last.weight;
            before.count += last.count;
        }
    }
    std::size_t at = 0;
    for (const Run& run : runs) {
        for (std::size_t i = 0; i < run.count; ++i)
            values[at++] = run.mean;
    }
}

/// Wilson's lower bound of a mean of scores in [0, 1], at 95 %, one-sided.
double lower_bound_of(double mean, double weight) noexcept {
    constexpr double z = 1.645;
    if (weight <= 0) return 0;
    const double middle = mean + z * z / (2 * weight);
    const double spread = z * std::sqrt(mean * (1 - mean) / weight + z * z / (4 * weight * weight));
    return std::max(0.0, (middle - spread) / (1 + z * z / weight));
}

}  // namespace

std::optional<double> sureness_of(std::span<const domain::TokenLogprob> tokens) {
    if (tokens.empty()) return std::nullopt;
    std::vector<double> values;
    values.reserve(tokens.size());
    double sum = 0;
    for (const domain::TokenLogprob& token : tokens) {
        // A token of probability zero, or nonsense from an upstream, is no more than very unlikely.
        const double value = std::isnan(token.logprob)
                                 ? -20.0
                                 : std::clamp(static_cast<double>(token.logprob), -20.0, 0.0);
        values.push_back(value);
        sum += value;
    }
    const std::size_t tenth = (values.size() + 9) / 10;
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(tenth - 1),
                     values.end());
    double lowest = 0;
    for (std::size_t i = 0; i < tenth; ++i)
        lowest += values[i];
    const double mean = sum / static_cast<double>(values.size());
    return std::exp((mean + lowest / static_cast<double>(tenth)) / 2);
}

domain::Money verification_cost(const domain::CapabilityProfile& needs,
                                const domain::TargetSpec& verifier) noexcept {
    constexpr std::uint32_t wrapping_tokens = 120;  // that stand around question and answer
    domain::Usage usage;
    usage.prompt_tokens = needs.prompt_tokens + needs.answer_tokens + wrapping_tokens;
    usage.answer_tokens = 8;
    return cost_of(usage, verifier.prices);
}

std::uint32_t bin_of(double sureness) noexcept {
    return static_cast<std::uint32_t>(std::clamp(sureness * bins, 0.0, bins - 1));
}

std::string band_name(domain::ConfidenceSource from, std::uint32_t bin) {
    if (from == domain::ConfidenceSource::logprobs) return fmt::format("sure{}", bin);
    return fmt::format("sure{}:{}", bin, to_string(from));
}

std::optional<SureBand> sure_band_from(std::string_view band) noexcept {
    if (band.size() < 5 || !band.starts_with("sure") || band[4] < '0' || band[4] > '9')
        return std::nullopt;
    SureBand found;
    found.bin = static_cast<std::uint32_t>(band[4] - '0');
    if (band.size() == 5) return found;
    const auto from = domain::confidence_source_from(band.substr(6));
    if (band[5] != ':' || !from) return std::nullopt;
    found.from = *from;
    return found;
}

Confidences::Curve Confidences::curve(const Lines* lines, std::optional<domain::Field> field,
                                      WallTime now) const {
    Curve values{};
    Curve weights{};
    for (std::size_t bin = 0; bin < values.size(); ++bin) {
        double weight = options_.prior_weight;
        double sum = weight * middle_of(bin);
        for (std::size_t i = 0; lines != nullptr && i < domain::fields_count; ++i) {
            const Average& seen = (*lines)[i][bin];
            const double faded = seen.faded(options_, now);
            sum += faded * seen.mean;
            weight += faded;
        }
        values[bin] = sum / weight;
        weights[bin] = weight;
        if (lines == nullptr || !field) continue;
        // All fields together are the prior of each.
        const Average& own = (*lines)[static_cast<std::size_t>(*field)][bin];
        const double faded = own.faded(options_, now);
        values[bin] = (values[bin] * options_.prior_weight + own.mean * faded) /
                      (options_.prior_weight + faded);
        weights[bin] = options_.prior_weight + faded;
    }
    make_rising(values, weights);
    return values;
}

double Confidences::at(const Meter& meter, domain::Field field, double sureness) const {
    const WallTime now = clock_.wall();
    const std::scoped_lock lock(mutex_);
    const auto found = seen_.find(meter);
    if (found == seen_.end()) return std::clamp(sureness, 0.0, 1.0);
    const Curve values = curve(&found->second, field, now);
    // Between the middles of the bins along a line.
    const double place = std::clamp(sureness * bins - 0.5, 0.0, bins - 1.0);
    const auto low = static_cast<std::size_t>(place);
    const std::size_t high = std::min<std::size_t>(low + 1, values.size() - 1);
    const double share = place - static_cast<double>(low);
    return values[low] * (1 - share) + values[high] * share;
}

SureRow Confidences::learn(const Meter& meter, domain::Field field, double sureness, double score,
                           double weight) {
    const WallTime now = clock_.wall();
    const std::uint32_t bin = bin_of(sureness);
    const std::scoped_lock lock(mutex_);
    Average& seen = seen_[meter][static_cast<std::size_t>(field)][bin];
    if (weight > 0) seen.add(std::clamp(score, 0.0, 1.0), weight, options_, now);
    return {.meter = meter,
            .field = field,
            .bin = bin,
            .mean = seen.mean,
            .weight = seen.weight,
            .updated = seen.updated};
}

void Confidences::load(const std::vector<SureRow>& rows) {
    const std::scoped_lock lock(mutex_);
    for (const SureRow& row : rows) {
        if (row.bin >= Confidences::bins) continue;
        seen_[row.meter][static_cast<std::size_t>(row.field)][row.bin] = {
            .mean = row.mean, .weight = row.weight, .updated = row.updated};
    }
}

std::vector<SureRow> Confidences::rows() const {
    const WallTime now = clock_.wall();
    const std::scoped_lock lock(mutex_);
    std::vector<SureRow> rows;
    for (const auto& [meter, lines] : seen_) {
        for (std::size_t field = 0; field < domain::fields_count; ++field) {
            for (std::uint32_t bin = 0; bin < Confidences::bins; ++bin) {
                const Average& seen = lines[field][bin];
                if (seen.weight <= 0) continue;
                rows.push_back({.meter = meter,
                                .field = static_cast<domain::Field>(field),
                                .bin = bin,
                                .mean = seen.mean,
                                .weight = seen.faded(options_, now),
                                .updated = seen.updated});
            }
        }
    }
    return rows;
}

std::optional<Threshold> Confidences::choose(const Meter& meter, std::optional<domain::Field> field,
                                             double precision) const {
    const WallTime now = clock_.wall();
    const std::scoped_lock lock(mutex_);
    const auto found = seen_.find(meter);
    if (found == seen_.end()) return std::nullopt;
    const Curve values = curve(&found->second, field, now);
    Curve weights{};
    Curve sums{};
    double whole = 0;
    for (std::size_t i = 0; i < domain::fields_count; ++i) {
        if (field && static_cast<std::size_t>(*field) != i) continue;
        for (std::size_t bin = 0; bin < weights.size(); ++bin) {
            const Average& seen = found->second[i][bin];
            const double faded = seen.faded(options_, now);
            weights[bin] += faded;
            sums[bin] += faded * seen.mean;
            whole += faded;
        }
    }
    std::optional<Threshold> best;
    double weight = 0;
    double sum = 0;
    for (std::size_t bin = weights.size(); bin-- > 0;) {
        weight += weights[bin];
        sum += sums[bin];
        // A line between two bins of one value would part what it cannot tell apart.
        const bool level = bin > 0 && values[bin - 1] >= values[bin];
        if (weights[bin] <= 0 || level) continue;
        const double lower = lower_bound_of(sum / weight, weight);
        if (lower < precision) continue;
        best = Threshold{
            .confidence_min = bin == 0 ? values[0] / 2 : (values[bin - 1] + values[bin]) / 2,
            .precision = sum / weight,
            .lower = lower,
            .accepted = weight / whole,
            .evidence = whole};
    }
    return best;
}

}  // namespace molly::router
