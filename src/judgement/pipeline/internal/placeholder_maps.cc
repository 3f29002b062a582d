#include "pipeline/internal/placeholder_maps.h"

#include "seal/seal.h"

namespace molly::pipeline {
namespace {

constexpr std::size_t seed_bytes = 32;

std::shared_ptr<policy::PlaceholderMap> fresh() {
    return std::make_shared<policy::PlaceholderMap>(seal::random_bytes(seed_bytes));
}

}  // namespace

std::shared_ptr<policy::PlaceholderMap> PlaceholderMaps::of(const std::string& conversation) {
    if (conversation.empty() || maps_max_ == 0) return fresh();
    const std::scoped_lock lock(mutex_);
    if (const auto known = index_.find(conversation); known != index_.end()) {
        order_.splice(order_.begin(), order_, known->second);
        return order_.front().second;
    }
    order_.emplace_front(conversation, fresh());
    index_.emplace(conversation, order_.begin());
    if (order_.size() > maps_max_) {
        index_.erase(order_.back().first);
        order_.pop_back();
    }
    return order_.front().second;
}

}  // namespace molly::pipeline
