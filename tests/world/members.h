#pragma once
// Keys and their room, in memory. One thread.
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "members/members.h"

namespace molly::world {

class OpenMembers final : public members::Members {
public:
    Result<members::Key> authenticate(std::string_view text) const override;
    Result<std::unique_ptr<members::Reservation>> reserve(const members::Key& key,
                                                          std::uint64_t tokens,
                                                          domain::Money cost) override;
    Task<Result<members::NewKey>> create(const members::Key* maker, members::Scope scope) override;
    Task<Result<void>> revoke(const members::Key& by, std::string id) override;
    std::vector<members::Key> list() const override;

    std::map<std::string, members::Key, std::less<>> keys;  ///< by their text
    std::map<std::string, domain::Money> budgets;           ///< what is left, by key; none: no end

    /// Room taken at this moment, over all keys.
    struct Room {
        std::uint32_t requests = 0;
        std::uint64_t tokens = 0;
    };
    const Room& room() const noexcept { return *room_; }

private:
    std::shared_ptr<Room> room_ = std::make_shared<Room>();
    std::map<std::string, std::shared_ptr<std::uint32_t>> running_;  // of each key
};

}  // namespace molly::world
