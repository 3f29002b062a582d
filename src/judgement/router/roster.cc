#include "router/roster.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "router/router.h"

namespace molly::router {
namespace {

/// Those of the first one's adapter: declarations of one adapter stand together.
std::span<const domain::Specialist> same_adapter(
    std::span<const domain::Specialist> from) noexcept {
    std::size_t count = from.empty() ? 0 : 1;
    while (count < from.size() && from[count].adapter == from[0].adapter)
        ++count;
    return from.first(count);
}

}  // namespace

Roster::Roster(std::vector<std::shared_ptr<const domain::TargetSpec>> targets,
               const Estimates* estimates)
    : targets_(std::move(targets)), estimates_(estimates) {
    for (std::uint32_t i = 0; i < targets_.size(); ++i) {
        std::span<const domain::Specialist> all = targets_[i]->specialists;
        first_.push_back(pairs_.size());
        const auto bare = same_adapter(all);
        const bool declared = !bare.empty() && bare.front().adapter.empty();
        add(i, {}, declared ? bare : all.first(0));
        if (declared) all = all.subspan(bare.size());
        while (!all.empty()) {
            const auto group = same_adapter(all);
            add(i, group.front().adapter, group);
            all = all.subspan(group.size());
        }
    }
    finish();
}

Roster::Roster(std::vector<std::shared_ptr<const domain::TargetSpec>> targets,
               const Estimates* estimates, const std::string& adapter)
    : targets_(std::move(targets)), estimates_(estimates) {
    const std::string name = adapter_name(adapter);
    for (std::uint32_t i = 0; i < targets_.size(); ++i) {
        const std::span<const domain::Specialist> all = targets_[i]->specialists;
        const auto first = std::find_if(all.begin(), all.end(), [&](const auto& one) {
            return one.adapter == adapter || one.adapter == name;
        });
        first_.push_back(pairs_.size());
        add(i, adapter, same_adapter(all.subspan(static_cast<std::size_t>(first - all.begin()))));
    }
    finish();
}

void Roster::add(std::uint32_t target, const std::string& adapter,
                 std::span<const domain::Specialist> declared) {
    Pair pair{.target = target, .order = 0, .adapter = adapter, .declared = declared};
    pair.of_field.fill(nobody);
    for (std::size_t i = std::min<std::size_t>(declared.size(), nobody); i-- > 0;)
        pair.of_field[static_cast<std::size_t>(declared[i].field)] = static_cast<std::uint8_t>(i);
    pairs_.push_back(std::move(pair));
}

void Roster::finish() {
    first_.push_back(pairs_.size());
    note_facts();
    outside_ = std::any_of(targets_.begin(), targets_.end(),
                           [](const auto& target) { return target->tier == domain::Tier::t3; });
    sorted_.resize(pairs_.size());
    std::iota(sorted_.begin(), sorted_.end(), 0U);
    const auto name = [this](std::uint32_t at) {
        return std::tie(spec_of(pairs_[at]).id, pairs_[at].adapter);
    };
    std::sort(sorted_.begin(), sorted_.end(),
              [&](std::uint32_t a, std::uint32_t b) { return name(a) < name(b); });
    std::vector<std::uint32_t> order = sorted_;
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
        const domain::Tier left = spec_of(pairs_[a]).tier;
        const domain::Tier right = spec_of(pairs_[b]).tier;
        return left != right ? left < right : name(a) < name(b);
    });
    for (std::uint32_t i = 0; i < order.size(); ++i)
        pairs_[order[i]].order = i;
    for (const Pair& pair : pairs_)
        links_.names.push_back({.target = spec_of(pair).id, .adapter = pair.adapter});
}

void Roster::note_facts() {
    std::map<std::pair<domain::Tier, std::set<std::string, std::less<>>>, std::uint32_t> known;
    for (const auto& target : targets_) {
        const auto next = static_cast<std::uint32_t>(places_.size());
        const auto place = known.emplace(std::pair(target->tier, target->places()), next);
        if (place.second) places_.push_back(target.get());
        facts_.push_back({.first_token_ms = static_cast<double>(target->first_token.count()),
                          .token_ms = 1000.0 / std::max(target->tokens_per_second, 0.001),
                          .prices = target->prices,
                          .capabilities = target->capabilities,
                          .tier = target->tier,
                          .place = place.first->second});
    }
}

std::size_t Roster::find(std::string_view target, std::string_view adapter) const noexcept {
    const auto place = std::lower_bound(sorted_.begin(), sorted_.end(), std::tie(target, adapter),
                                        [this](std::uint32_t at, const auto& wanted) {
                                            const std::string_view id = spec_of(pairs_[at]).id;
                                            const std::string_view name = pairs_[at].adapter;
                                            return std::tie(id, name) < wanted;
                                        });
    if (place == sorted_.end()) return pairs_.size();
    const Pair& pair = pairs_[*place];
    return spec_of(pair).id == target && pair.adapter == adapter ? *place : pairs_.size();
}

double Roster::prior(const Pair& pair, std::size_t field) const noexcept {
    const std::uint8_t which = pair.of_field[field];
    return which == nobody ? spec_of(pair).quality : pair.declared[which].quality;
}

std::shared_ptr<const std::vector<Belief>> Roster::beliefs(std::size_t field,
                                                           std::size_t band) const {
    const std::scoped_lock lock(mutex_);
    Column& column = columns_[field * domain::bands_count + band];
    const std::uint64_t version = estimates_ == nullptr ? 0 : estimates_->version(field, band);
    const WallTime hour = estimates_ == nullptr ? WallTime() : estimates_->hour();
    if (column.beliefs && column.version == version && column.hour == hour) return column.beliefs;
    std::vector<double> priors;
    priors.reserve(pairs_.size());
    for (const Pair& pair : pairs_)
        priors.push_back(prior(pair, field));
    std::vector<Belief> beliefs;
    if (estimates_ != nullptr) beliefs = estimates_->read(links_, field, band, priors);
    for (std::size_t i = beliefs.size(); i < priors.size(); ++i)
        beliefs.push_back({.mean = priors[i], .lower = priors[i], .evidence = 0});
    column = {.version = version,
              .hour = hour,
              .beliefs = std::make_shared<const std::vector<Belief>>(std::move(beliefs))};
    return column.beliefs;
}

Belief Roster::belief(std::size_t pair, const domain::CapabilityProfile& needs,
                      double prior) const {
    if (estimates_ == nullptr) return {.mean = prior, .lower = prior, .evidence = 0};
    return estimates_->read(links_, pair, needs, prior);
}

}  // namespace molly::router
