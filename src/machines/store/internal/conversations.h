#pragma once
// The labels that stick to conversations: raised, and lowered by a recorded act alone. Bounded
// memory; what does not fit is read from the database. Safe from any thread.
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "domain/label.h"

namespace molly::store::internal {

class Conversations {
public:
    /// Reads the label of a conversation that is not in memory.
    using Lookup = std::function<std::optional<domain::Label>(const std::string&)>;

    explicit Conversations(std::size_t entries_max) : entries_max_(entries_max) {}

    std::optional<domain::Label> find(const std::string& id) const;
    /// Joins `label` to what sticks already. Whether a row must be written.
    bool raise(const std::string& id, const domain::Label& label, std::int64_t day);
    /// Lowers the class of what sticks, by a person's act; places and origins stay.
    void lower(const std::string& id, domain::Sensitivity to, std::int64_t day);
    /// Puts a stored row back, least recent first.
    void restore(std::string id, domain::Label label, std::int64_t day);
    /// How to look up a miss once memory could not hold every conversation.
    void look_up(Lookup lookup);
    /// Forgets what was last seen before `day`.
    void expire(domain::Sensitivity sensitivity, std::int64_t day);

private:
    struct Entry {
        std::string id;
        domain::Label label;
        std::int64_t day = 0;  // last seen, UTC days
    };
    using Order = std::list<Entry>;  // least recently used first
    Entry* touch(const std::string& id) const;
    std::optional<domain::Label> stored(const std::string& id) const;
    void insert(const std::string& id, domain::Label label, std::int64_t day);
    void trim();

    const std::size_t entries_max_;
    mutable std::mutex mutex_;
    mutable Order order_;
    std::unordered_map<std::string, Order::iterator> index_;
    Lookup lookup_;
    bool complete_ = true;  // memory holds every conversation
};

}  // namespace molly::store::internal
