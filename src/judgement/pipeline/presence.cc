#include "pipeline/presence.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "pipeline/internal/adapter_label.h"

namespace molly::pipeline {

using Serving = router::Moment::Serving;

namespace {

/// Where the label is in `labels`, which it joins if it is new. Origins decide nothing.
std::uint32_t number_of(domain::Label label, std::vector<domain::Label>& labels) {
    label.origins.clear();
    const auto known = std::find(labels.begin(), labels.end(), label);
    const auto number = static_cast<std::uint32_t>(known - labels.begin());
    if (known == labels.end()) labels.push_back(std::move(label));
    return number;
}

}  // namespace

Presence::Presence(std::vector<targets::Target*> targets, const router::Roster& roster)
    : targets_(std::move(targets)), roster_(roster) {
    for (std::size_t i = 0; i < targets_.size(); ++i) {
        if (roster_.first_of(i + 1) - roster_.first_of(i) > 1) watched_.push_back(i);
    }
}

std::shared_ptr<const Presence::Found> Presence::search(std::vector<std::uint64_t> versions) const {
    auto found = std::make_shared<Found>();
    found->versions = std::move(versions);
    for (const router::Roster::Pair& pair : roster_.pairs()) {
        found->pairs.push_back(Serving::yes);
        found->label_of.push_back(absent);
        if (pair.adapter.empty()) continue;
        auto label = targets_[pair.target]->adapter_label(pair.adapter);
        if (label) {
            found->label_of.back() = number_of(*std::move(label), found->labels);
            continue;
        }
        found->pairs.back() = Serving::no;
        const ErrorCode code = label.error().code();
        const bool known = code == ErrorCode::not_found || code == ErrorCode::conflict;
        found->lasting = found->lasting && known;
    }
    return found;
}

std::shared_ptr<const Presence::Found> Presence::found() const {
    // Before the search: what changes during it is looked for again.
    std::vector<std::uint64_t> versions;
    versions.reserve(watched_.size());
    for (const std::size_t target : watched_)
        versions.push_back(targets_[target]->adapters_version());
    {
        const std::scoped_lock lock(mutex_);
        if (latest_ && latest_->versions == versions) return latest_;
    }
    auto found = search(std::move(versions));
    const std::scoped_lock lock(mutex_);
    if (found->lasting) latest_ = found;
    return found;
}

/// Marks the pairs of one label that may not answer a request with this permit.
void Presence::deny(const policy::Permit& permit, const domain::Label& label, const Found& found,
                    std::uint32_t number, router::Moment& moment) const {
    // Of all targets of a place the permit says the same.
    std::vector<std::optional<Result<void>>> said(roster_.places().size());
    for (std::size_t i = 0; i < found.label_of.size(); ++i) {
        if (found.label_of[i] != number) continue;
        const std::uint32_t target = roster_.pairs()[i].target;
        auto& allowed = said[roster_.facts()[target].place];
        if (!allowed) allowed = check_label(permit, label, *roster_.targets()[target]);
        if (*allowed) continue;
        moment.pairs[i] = Serving::denied;
        moment.denied[i] = allowed->error().message();
    }
}

void Presence::look(const policy::ClearedRequest& cleared, const policy::PolicyEngine& policy,
                    router::Moment& moment) const {
    const std::shared_ptr<const Found> found = this->found();
    moment.pairs = found->pairs;
    for (std::uint32_t number = 0; number < found->labels.size(); ++number) {
        const domain::Label& label = found->labels[number];
        const auto permit = permit_with(policy, cleared.annotated(), label);
        if (permit && !*permit) continue;
        if (permit) {
            deny(**permit, label, *found, number, moment);
            continue;
        }
        for (std::size_t i = 0; i < found->label_of.size(); ++i) {
            if (found->label_of[i] != number) continue;
            moment.pairs[i] = Serving::denied;
            moment.denied[i] = permit.error().message();
        }
    }
}

}  // namespace molly::pipeline
