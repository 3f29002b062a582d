#include "store/internal/conversations.h"

#include <algorithm>
#include <utility>

namespace molly::store::internal {

Conversations::Entry* Conversations::touch(const std::string& id) const {
    const auto found = index_.find(id);
    if (found == index_.end()) return nullptr;
    order_.splice(order_.end(), order_, found->second);
    return &*found->second;
}

std::optional<domain::Label> Conversations::find(const std::string& id) const {
    const std::scoped_lock lock(mutex_);
    if (const Entry* entry = touch(id)) return entry->label;
    return stored(id);
}

std::optional<domain::Label> Conversations::stored(const std::string& id) const {
    if (complete_ || !lookup_) return std::nullopt;
    return lookup_(id);
}

bool Conversations::raise(const std::string& id, const domain::Label& label, std::int64_t day) {
    const std::scoped_lock lock(mutex_);
    if (Entry* entry = touch(id)) {
        domain::Label joined = domain::join(entry->label, label);
        if (joined == entry->label && entry->day == day) return false;
        entry->label = std::move(joined);
        entry->day = day;
        return true;
    }
    domain::Label joined = label;
    if (const auto known = stored(id)) joined = domain::join(*known, label);
    insert(id, std::move(joined), day);
    return true;
}

void Conversations::lower(const std::string& id, domain::Sensitivity to, std::int64_t day) {
    const std::scoped_lock lock(mutex_);
    if (Entry* entry = touch(id)) {
        entry->label.sensitivity = std::min(entry->label.sensitivity, to);
        entry->day = day;
        return;
    }
    auto known = stored(id);
    if (!known) return;
    known->sensitivity = std::min(known->sensitivity, to);
    insert(id, *std::move(known), day);
}

void Conversations::insert(const std::string& id, domain::Label label, std::int64_t day) {
    order_.push_back({.id = id, .label = std::move(label), .day = day});
    index_.emplace(id, std::prev(order_.end()));
    trim();
}

void Conversations::restore(std::string id, domain::Label label, std::int64_t day) {
    const std::scoped_lock lock(mutex_);
    order_.push_back({.id = std::move(id), .label = std::move(label), .day = day});
    index_.insert_or_assign(order_.back().id, std::prev(order_.end()));
    trim();
}

void Conversations::look_up(Lookup lookup) {
    const std::scoped_lock lock(mutex_);
    lookup_ = std::move(lookup);
}

void Conversations::expire(domain::Sensitivity sensitivity, std::int64_t day) {
    const std::scoped_lock lock(mutex_);
    for (auto entry = order_.begin(); entry != order_.end();) {
        if (entry->label.sensitivity != sensitivity || entry->day >= day) {
            ++entry;
            continue;
        }
        index_.erase(entry->id);
        entry = order_.erase(entry);
    }
}

void Conversations::trim() {
    while (order_.size() > entries_max_) {
        index_.erase(order_.front().id);
        order_.pop_front();
        complete_ = false;
    }
}

}  // namespace molly::store::internal
