#include "world/members.h"

#include "base/coroutine.h"

namespace molly::world {
namespace {

class Taken final : public members::Reservation {
public:
    Taken(std::shared_ptr<OpenMembers::Room> room, std::shared_ptr<std::uint32_t> running,
          std::uint64_t tokens, domain::Money* budget)
        : room_(std::move(room)), running_(std::move(running)), tokens_(tokens), budget_(budget) {
        ++room_->requests;
        ++*running_;
        room_->tokens += tokens_;
    }
    Taken(const Taken&) = delete;
    Taken& operator=(const Taken&) = delete;
    Taken(Taken&&) = delete;
    Taken& operator=(Taken&&) = delete;
    ~Taken() override {
        --room_->requests;
        --*running_;
        room_->tokens -= tokens_;
    }
    void settle(std::uint64_t /*tokens*/, domain::Money cost) override {
        if (budget_ != nullptr) budget_->nano -= cost.nano;
    }

private:
    std::shared_ptr<OpenMembers::Room> room_;
    std::shared_ptr<std::uint32_t> running_;
    std::uint64_t tokens_;
    domain::Money* budget_;
};

}  // namespace

Result<members::Key> OpenMembers::authenticate(std::string_view text) const {
    const auto found = keys.find(text);
    if (found == keys.end()) return fail(ErrorCode::unauthenticated, "this key is not known");
    return found->second;
}

Result<std::unique_ptr<members::Reservation>> OpenMembers::reserve(const members::Key& key,
                                                                   std::uint64_t tokens,
                                                                   domain::Money cost) {
    const auto limit = budgets.find(key.id);
    if (limit != budgets.end() && cost > limit->second) {
        return fail(Error(ErrorCode::exhausted, "this key's budget is used up").reason("budget"));
    }
    auto& running = running_[key.id];
    if (!running) running = std::make_shared<std::uint32_t>(0);
    if (key.scope.parallel_max && *running >= *key.scope.parallel_max) {
        return fail(Error(ErrorCode::rate_limited, "this key has as many requests as it may")
                        .retry_after(std::chrono::seconds(1)));
    }
    return std::make_unique<Taken>(room_, running, tokens,
                                   limit == budgets.end() ? nullptr : &limit->second);
}

Task<Result<members::NewKey>> OpenMembers::create(const members::Key* /*maker*/,
                                                  members::Scope /*scope*/) {
    co_return fail(ErrorCode::unsupported, "keys of this world are given");
}

Task<Result<void>> OpenMembers::revoke(const members::Key& /*by*/, std::string /*id*/) {
    co_return fail(ErrorCode::unsupported, "keys of this world are given");
}

std::vector<members::Key> OpenMembers::list() const {
    std::vector<members::Key> all;
    for (const auto& [text, key] : keys)
        all.push_back(key);
    return all;
}

}  // namespace molly::world
