#pragma once
// Who may ask, and how much: API keys, scopes, rates, budgets. Keys are kept as hashes and shown
// once. All checks run in memory and reserve atomically; safe from any thread.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/task.h"
#include "domain/label.h"
#include "domain/money.h"
#include "domain/request.h"
#include "store/store.h"

namespace molly::members {

/// What a key may do. A child's scope is a subset of its parent's.
struct Scope {
    std::string member;  ///< whose key it is
    std::string app;     ///< the application that it was made for, optional
    bool admin = false;  ///< may make keys for every member, revoke every key, read every trace
    domain::TierSet tiers = {domain::Tier::t0, domain::Tier::t1, domain::Tier::t2,
                             domain::Tier::t3};
    std::vector<std::string>
        models;  ///< targets (with their adapters) or target/adapter; empty: all
    domain::Sensitivity lowest_class = domain::Sensitivity::private_;
    std::optional<domain::Sensitivity> default_class;
    std::optional<std::uint32_t> requests_per_minute;
    std::optional<std::uint32_t> tokens_per_minute;
    std::optional<std::uint32_t> parallel_max;
    std::optional<domain::Money> budget_per_month;
    std::optional<WallTime> expires;
    /// The lowest class to which it may lower the label of a conversation; unset: it may not.
    std::optional<domain::Sensitivity> declassify = {};
};

struct Key {
    std::string id;
    std::string parent;
    std::string hint;  ///< last four characters of the key
    Scope scope;
    WallTime created;
    std::optional<WallTime> revoked;
};

/// A key as it was made: the text is never seen again.
struct NewKey {
    Key key;
    std::string text;  ///< `molly-` and 40 characters
};

/// Room taken by one request in its key's limits; gives back what was not used.
class Reservation {
public:
    virtual ~Reservation() =
        default;  // without settle: gives everything back but the request count
    /// Replaces the estimate by what was used; the first call counts. Failed attempts that cost
    /// something belong into `cost`.
    virtual void settle(std::uint64_t tokens, domain::Money cost) = 0;
};

class Members {
public:
    /// Reads the keys. Errors: corrupt, unavailable.
    static Result<std::unique_ptr<Members>> open(store::Store& store, Clock& clock);
    virtual ~Members() = default;

    /// The key that `text` is. Errors: unauthenticated (missing, unknown, expired, revoked: told
    /// apart, never quoted).
    virtual Result<Key> authenticate(std::string_view text) const = 0;

    /// Takes room for one request, all limits or none; the limits of the keys that this one
    /// descends from count too. A refusal consumes nothing. Errors: rate_limited (with
    /// retry_after), exhausted (budget), too_large (more tokens than a minute ever has),
    /// unauthenticated (revoked meanwhile).
    virtual Result<std::unique_ptr<Reservation>> reserve(const Key& key, std::uint64_t tokens,
                                                         domain::Money cost) = 0;

    /// Makes a key. A key that is no admin makes children for its own member. Errors: denied, when
    /// `scope` is wider than the maker's (naming the field); without a maker: the first admin key
    /// only; invalid_request.
    virtual Task<Result<NewKey>> create(const Key* maker, Scope scope) = 0;
    /// Revokes a key and its children, at once. An admin revokes any, others their own. Errors:
    /// not_found, denied.
    virtual Task<Result<void>> revoke(const Key& by, std::string id) = 0;
    virtual std::vector<Key> list() const = 0;
};

/// The caller as policy and traces see it.
domain::Caller caller_of(const Key& key);
/// Scope as JSON text, and back. Errors: invalid_request with the field's path.
std::string to_text(const Scope& scope);
Result<Scope> scope_from(std::string_view json);

}  // namespace molly::members
