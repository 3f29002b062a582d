#pragma once
// The placeholder maps of the conversations that went to third parties lately. In memory only.
// Safe from any thread.
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "policy/placeholders.h"

namespace molly::pipeline {

class PlaceholderMaps {
public:
    /// With `maps_max` maps the least recently used one goes: its conversation gets a new nonce.
    explicit PlaceholderMaps(std::size_t maps_max) : maps_max_(maps_max) {}

    /// The conversation's map; a request without conversation has one of its own.
    std::shared_ptr<policy::PlaceholderMap> of(const std::string& conversation);

private:
    using Entry = std::pair<std::string, std::shared_ptr<policy::PlaceholderMap>>;

    const std::size_t maps_max_;
    std::mutex mutex_;
    std::list<Entry> order_;  // most recently used first
    std::unordered_map<std::string, std::list<Entry>::iterator> index_;
};

}  // namespace molly::pipeline
