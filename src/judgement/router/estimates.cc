#include "router/estimates.h"

#include <algorithm>
#include <cmath>

namespace molly::router {
namespace {

constexpr float share_min = 0.05F;  // of a field, below which it counts for nothing

/// A declaration and what was seen of it.
Belief believe(double prior, const Average* seen, const EstimateOptions& options, WallTime now) {
    const double weight = seen == nullptr ? 0 : seen->faded(options, now);
    if (!(weight > 0)) return {.mean = prior, .lower = prior, .evidence = 0};
    const double whole = options.prior_weight + weight;
    Belief belief;
    belief.mean = (prior * options.prior_weight + seen->mean * weight) / whole;
    const double error = std::sqrt(std::max(0.0, belief.mean * (1 - belief.mean)) / whole);
    // A declaration is taken at its word until something was seen.
    belief.lower = std::max(0.0, belief.mean - options.doubt * error * weight / whole);
    belief.evidence = weight;
    return belief;
}

void add(Belief& sum, const Belief& part, double share) noexcept {
    sum.mean += share * part.mean;
    sum.lower += share * part.lower;
    sum.evidence += share * part.evidence;
}

}  // namespace

FieldMix fields_of(const domain::CapabilityProfile& needs) noexcept {
    FieldMix mix;
    double sum = 0;
    for (std::size_t i = 0; needs.classified && i < domain::fields_count; ++i) {
        if (needs.fields[i] < share_min) continue;
        mix.parts[mix.count++] = {.field = i, .share = needs.fields[i]};
        sum += needs.fields[i];
    }
    if (mix.count == 0) {
        mix.parts[0] = {.field = static_cast<std::size_t>(domain::Field::other), .share = 1.0};
        mix.count = 1;
        return mix;
    }
    for (std::size_t i = 0; i < mix.count; ++i)
        mix.parts[i].share /= sum;
    return mix;
}

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

const Estimates::Cells* Estimates::find(std::string_view target, std::string_view adapter) const {
    const auto adapters = seen_.find(target);
    if (adapters == seen_.end()) return nullptr;
    const auto place = std::lower_bound(adapters->second.begin(), adapters->second.end(), adapter,
                                        [](const std::unique_ptr<Cells>& one,
                                           std::string_view name) { return one->adapter < name; });
    const bool there = place != adapters->second.end() && (*place)->adapter == adapter;
    return there ? place->get() : nullptr;
}

std::vector<Belief> Estimates::read(Links& links, std::size_t field, std::size_t band,
                                    std::span<const double> priors) const {
    const WallTime now = hour();
    const std::scoped_lock lock(mutex_);
    if (links.known != known_) {
        links.cells.clear();
        for (const Links::Name& name : links.names)
            links.cells.push_back(find(name.target, name.adapter));
        links.known = known_;
    }
    std::vector<Belief> beliefs;
    beliefs.reserve(priors.size());
    for (std::size_t i = 0; i < priors.size(); ++i) {
        const Cells* cells = links.cells[i];
        beliefs.push_back(believe(
            priors[i], cells == nullptr ? nullptr : &cells->bands[field][band], options_, now));
    }
    return beliefs;
}

Belief Estimates::read(const Links& links, std::size_t which,
                       const domain::CapabilityProfile& needs, double prior) const {
    const WallTime now = hour();
    const auto band = static_cast<std::size_t>(needs.band());
    const FieldMix mix = fields_of(needs);
    const std::scoped_lock lock(mutex_);
    const Cells* cells = find(links.names[which].target, links.names[which].adapter);
    Belief belief;
    for (const FieldMix::Part& part : mix.all()) {
        const Average* seen = cells == nullptr ? nullptr : &cells->bands[part.field][band];
        add(belief, believe(prior, seen, options_, now), part.share);
    }
    return belief;
}

Belief Estimates::at(const domain::TargetSpec& target, const std::string& adapter,
                     const domain::CapabilityProfile& needs) const {
    std::vector<domain::Specialist> declared;
    for (const domain::Specialist& one : target.specialists) {
        if (one.adapter == adapter) declared.push_back(one);
    }
    const WallTime now = clock_.wall();
    const auto band = static_cast<std::size_t>(needs.band());
    const FieldMix mix = fields_of(needs);
    const std::scoped_lock lock(mutex_);
    const Cells* cells = find(target.id, adapter);
    Belief belief;
    for (const FieldMix::Part& part : mix.all()) {
        const Average* seen = cells == nullptr ? nullptr : &cells->bands[part.field][band];
        const double prior = prior_in(target, declared, static_cast<domain::Field>(part.field));
        add(belief, believe(prior, seen, options_, now), part.share);
    }
    return belief;
}

Estimates::Bands& Estimates::bands_of(const std::string& target, const std::string& adapter) {
    Adapters& adapters = seen_[target];
    const auto place =
        std::lower_bound(adapters.begin(), adapters.end(), adapter,
                         [](const std::unique_ptr<Cells>& one, const std::string& name) {
                             return one->adapter < name;
                         });
    if (place != adapters.end() && (*place)->adapter == adapter) return (*place)->bands;
    ++known_;
    return (*adapters.insert(place, std::make_unique<Cells>(Cells{adapter, {}})))->bands;
}

std::vector<EstimateRow> Estimates::learn(const std::string& target, const std::string& adapter,
                                          const domain::CapabilityProfile& needs, double score,
                                          double weight) {
    std::vector<EstimateRow> changed;
    if (!(weight > 0) || !std::isfinite(score)) return changed;
    const FieldMix mix = fields_of(needs);
    for (const auto& [field, share] : mix.all()) {
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
    changed(static_cast<std::size_t>(seen.field), static_cast<std::size_t>(seen.band));
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
        changed(static_cast<std::size_t>(row.field), static_cast<std::size_t>(row.band));
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
