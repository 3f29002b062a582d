#include "router/estimates.h"

#include <algorithm>
#include <cmath>

namespace molly::router {
namespace {

constexpr float share_min = 0.05F;  // of a field, below which it counts for nothing

using Shares = std::array<std::pair<std::size_t, double>, domain::fields_count>;

/// The fields of a request with their shares, and how many they are; what was not classified is
/// `other`.
std::size_t shares_of(const domain::CapabilityProfile& needs, Shares& shares) noexcept {
    std::size_t count = 0;
    double sum = 0;
    for (std::size_t i = 0; needs.classified && i < domain::fields_count; ++i) {
        if (needs.fields[i] < share_min) continue;
        shares[count++] = {i, needs.fields[i]};
        sum += needs.fields[i];
    }
    if (count == 0) {
        shares[0] = {static_cast<std::size_t>(domain::Field::other), 1.0};
        return 1;
    }
    for (std::size_t i = 0; i < count; ++i)
        shares[i].second /= sum;
    return count;
}

}  // namespace

double prior_in(const domain::TargetSpec& target, std::span<const domain::Specialist> declared,
                domain::Field field) noexcept {
    for (const domain::Specialist& one : declared) {
        if (one.field == field) return one.quality;
    }
    return target.quality;
}

double Average::faded(const EstimateOptions& options, WallTime now) const noexcept {
    if (weight <= 0) return 0;
    const std::chrono::duration<double> age = now - updated;
    const std::chrono::duration<double> half = options.half_life;
    return weight * std::exp2(-std::max(0.0, age.count()) / std::max(1.0, half.count()));
}

void Average::add(double score, double by, const EstimateOptions& options, WallTime now) noexcept {
    const double before = faded(options, now);
    mean = (mean * before + score * by) / (before + by);
    weight = std::min(before + by, options.weight_max);
    updated = now;
}

Estimates::Reading::Reading(const Estimates& from, const domain::CapabilityProfile& needs)
    : options_(from.options_),
      from_(from),
      lock_(from.mutex_),
      now_(from.clock_.wall()),
      band_(static_cast<std::size_t>(needs.band())),
      shares_count_(shares_of(needs, shares_)) {}

void Estimates::Reading::open(const domain::TargetSpec& target) {
    target_ = &target;
    const auto found = from_.seen_.find(target.id);
    adapters_ = found == from_.seen_.end() ? nullptr : &found->second;
    next_ = 0;
}

Belief Estimates::Reading::at(std::string_view adapter,
                              std::span<const domain::Specialist> declared,
                              const domain::Specialist* only) {
    const Bands* bands = nullptr;
    if (adapters_ != nullptr) {
        // Candidates come by their adapters' names, as the cells lie.
        if (next_ > 0 && adapter < (*adapters_)[next_ - 1]->adapter) next_ = 0;
        while (next_ < adapters_->size() && (*adapters_)[next_]->adapter < adapter)
            ++next_;
        if (next_ < adapters_->size() && (*adapters_)[next_]->adapter == adapter)
            bands = &(*adapters_)[next_++]->bands;
    }
    Belief belief;
    for (std::size_t i = 0; i < shares_count_; ++i) {
        const auto& [field, share] = shares_[i];
        double mean = only != nullptr
                          ? only->quality
                          : prior_in(*target_, declared, static_cast<domain::Field>(field));
        double lower = mean;
        const Average* seen = bands == nullptr ? nullptr : &(*bands)[field][band_];
        if (seen != nullptr && seen->weight > 0) {
            const double weight = seen->faded(options_, now_);
            const double whole = options_.prior_weight + weight;
            mean = (mean * options_.prior_weight + seen->mean * weight) / whole;
            const double error = std::sqrt(std::max(0.0, mean * (1 - mean)) / whole);
            // A declaration is taken at its word until something was seen.
            lower = std::max(0.0, mean - options_.doubt * error * weight / whole);
            belief.evidence += share * weight;
        }
        belief.mean += share * mean;
        belief.lower += share * lower;
    }
    return belief;
}

Belief Estimates::at(const domain::TargetSpec& target, const std::string& adapter,
                     const domain::CapabilityProfile& needs) const {
    std::vector<domain::Specialist> declared;
    for (const domain::Specialist& one : target.specialists) {
        if (one.adapter == adapter) declared.push_back(one);
    }
    Reading reading(*this, needs);
    reading.open(target);
    return reading.at(adapter, declared);
}

Estimates::Bands& Estimates::bands_of(const std::string& target, const std::string& adapter) {
    Adapters& adapters = seen_[target];
    const auto place =
        std::lower_bound(adapters.begin(), adapters.end(), adapter,
                         [](const std::unique_ptr<Cells>& one, const std::string& name) {
                             return one->adapter < name;
                         });
    if (place != adapters.end() && (*place)->adapter == adapter) return (*place)->bands;
    return (*adapters.insert(place, std::make_unique<Cells>(Cells{adapter, {}})))->bands;
}

std::vector<EstimateRow> Estimates::learn(const std::string& target, const std::string& adapter,
                                          const domain::CapabilityProfile& needs, double score,
                                          double weight) {
    std::vector<EstimateRow> changed;
    if (!(weight > 0) || !std::isfinite(score)) return changed;
    Shares shares{};
    const std::size_t count = shares_of(needs, shares);
    for (std::size_t i = 0; i < count; ++i) {
        const auto& [field, share] = shares[i];
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
    Average& cell = bands_of(
        seen.target,
        seen.adapter)[static_cast<std::size_t>(seen.field)][static_cast<std::size_t>(seen.band)];
    if (seen.weight > 0) cell.add(std::clamp(seen.mean, 0.0, 1.0), seen.weight, options_, now);
    EstimateRow row = seen;
    row.mean = cell.mean;
    row.weight = cell.weight;
    row.updated = cell.updated;
    return row;
}

void Estimates::load(const std::vector<EstimateRow>& rows) {
    const std::scoped_lock lock(mutex_);
    for (const EstimateRow& row : rows) {
        bands_of(
            row.target,
            row.adapter)[static_cast<std::size_t>(row.field)][static_cast<std::size_t>(row.band)] =
            {.mean = row.mean, .weight = row.weight, .updated = row.updated};
    }
}

std::vector<EstimateRow> Estimates::rows() const {
    const WallTime now = clock_.wall();
    const std::scoped_lock lock(mutex_);
    std::vector<EstimateRow> rows;
    const auto add = [&](const std::string& target, const Cells& cells) {
        for (std::size_t field = 0; field < domain::fields_count; ++field) {
            for (std::size_t band = 0; band < domain::bands_count; ++band) {
                const Average& seen = cells.bands[field][band];
                if (seen.weight <= 0) continue;
                rows.push_back({.target = target,
                                .adapter = cells.adapter,
                                .field = static_cast<domain::Field>(field),
                                .band = static_cast<domain::Band>(band),
                                .mean = seen.mean,
                                .weight = seen.faded(options_, now),
                                .updated = seen.updated});
            }
        }
    };
    for (const auto& [target, adapters] : seen_) {
        for (const auto& cells : adapters)
            add(target, *cells);
    }
    return rows;
}

}  // namespace molly::router
