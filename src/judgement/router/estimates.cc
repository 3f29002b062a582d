#include "router/estimates.h"

#include <algorithm>
#include <cmath>

namespace molly::router {
namespace {

constexpr float share_min = 0.05F;  // of a field, below which it counts for nothing

/// The fields of a request with their shares; what was not classified is `other`.
std::vector<std::pair<std::size_t, double>> shares_of(const domain::CapabilityProfile& needs) {
    std::vector<std::pair<std::size_t, double>> shares;
    double sum = 0;
    for (std::size_t i = 0; needs.classified && i < domain::fields_count; ++i) {
        if (needs.fields[i] < share_min) continue;
        shares.emplace_back(i, needs.fields[i]);
        sum += needs.fields[i];
    }
    if (shares.empty()) return {{static_cast<std::size_t>(domain::Field::other), 1.0}};
    for (auto& [field, share] : shares)
        share /= sum;
    return shares;
}

}  // namespace

double prior_of(const domain::TargetSpec& target, const std::string& adapter, domain::Field field) {
    for (const domain::Specialist& one : target.specialists) {
        if (one.field == field && one.adapter == adapter) return one.quality;
    }
    return target.quality;
}

double Estimates::faded(const Seen& seen, WallTime now) const {
    if (seen.weight <= 0) return 0;
    const std::chrono::duration<double> age = now - seen.updated;
    const std::chrono::duration<double> half = options_.half_life;
    return seen.weight * std::exp2(-std::max(0.0, age.count()) / std::max(1.0, half.count()));
}

void Estimates::add(Seen& seen, double score, double weight, WallTime now) const {
    const double before = faded(seen, now);
    seen.mean = (seen.mean * before + score * weight) / (before + weight);
    seen.weight = std::min(before + weight, options_.weight_max);
    seen.updated = now;
}

Belief Estimates::at(const domain::TargetSpec& target, const std::string& adapter,
                     const domain::CapabilityProfile& needs) const {
    const WallTime now = clock_.wall();
    const auto band = static_cast<std::size_t>(needs.band());
    const std::scoped_lock lock(mutex_);
    const auto found = seen_.find({target.id, adapter});
    Belief belief;
    for (const auto& [field, share] : shares_of(needs)) {
        const double prior = prior_of(target, adapter, static_cast<domain::Field>(field));
        double weight = 0;
        double mean = prior;
        if (found != seen_.end()) {
            const Seen& seen = found->second[field][band];
            weight = faded(seen, now);
            mean = (prior * options_.prior_weight + seen.mean * weight) /
                   (options_.prior_weight + weight);
        }
        // A declaration is taken at its word until something was seen.
        const double whole = options_.prior_weight + weight;
        const double error = std::sqrt(std::max(0.0, mean * (1 - mean)) / whole);
        belief.mean += share * mean;
        belief.lower += share * std::max(0.0, mean - options_.doubt * error * weight / whole);
        belief.evidence += share * weight;
    }
    return belief;
}

std::vector<EstimateRow> Estimates::learn(const std::string& target, const std::string& adapter,
                                          const domain::CapabilityProfile& needs, double score,
                                          double weight) {
    std::vector<EstimateRow> changed;
    if (!(weight > 0) || !std::isfinite(score)) return changed;
    for (const auto& [field, share] : shares_of(needs)) {
        changed.push_back(learn(EstimateRow{.target = target,
                                            .adapter = adapter,
                                            .field = static_cast<domain::Field>(field),
                                            .band = needs.band(),
                                            .mean = score,
                                            .weight = weight * share,
                                            .updated = {}}));
    }
    return changed;
}

EstimateRow Estimates::learn(const EstimateRow& seen) {
    const WallTime now = clock_.wall();
    const std::scoped_lock lock(mutex_);
    Seen& cell = seen_[{seen.target, seen.adapter}][static_cast<std::size_t>(seen.field)]
                      [static_cast<std::size_t>(seen.band)];
    if (seen.weight > 0) add(cell, std::clamp(seen.mean, 0.0, 1.0), seen.weight, now);
    EstimateRow row = seen;
    row.mean = cell.mean;
    row.weight = cell.weight;
    row.updated = cell.updated;
    return row;
}

void Estimates::load(const std::vector<EstimateRow>& rows) {
    const std::scoped_lock lock(mutex_);
    for (const EstimateRow& row : rows) {
        seen_[{row.target, row.adapter}][static_cast<std::size_t>(row.field)]
             [static_cast<std::size_t>(row.band)] = {
                 .mean = row.mean, .weight = row.weight, .updated = row.updated};
    }
}

std::vector<EstimateRow> Estimates::rows() const {
    const WallTime now = clock_.wall();
    const std::scoped_lock lock(mutex_);
    std::vector<EstimateRow> rows;
    for (const auto& [key, bands] : seen_) {
        for (std::size_t field = 0; field < domain::fields_count; ++field) {
            for (std::size_t band = 0; band < domain::bands_count; ++band) {
                const Seen& seen = bands[field][band];
                if (seen.weight <= 0) continue;
                rows.push_back({.target = key.first,
                                .adapter = key.second,
                                .field = static_cast<domain::Field>(field),
                                .band = static_cast<domain::Band>(band),
                                .mean = seen.mean,
                                .weight = faded(seen, now),
                                .updated = seen.updated});
            }
        }
    }
    return rows;
}

}  // namespace molly::router
