#pragma once
// What the keys have used of their limits. A key's use counts for the keys that it descends from
// as well, so that children cannot add up to more than their parent. Not safe from several threads.
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "domain/money.h"
#include "members/members.h"

namespace molly::members::internal {

/// Amounts of the last minute, by second.
class Window {
public:
    /// The sum of the 60 seconds before `second`.
    std::uint64_t sum(std::int64_t second);
    void add(std::int64_t second, std::uint64_t amount);
    /// Takes back what `add` put at `second`, if it still counts.
    void take_back(std::int64_t second, std::uint64_t amount);
    /// Seconds until `amount` more fits under `limit`; call `sum` first.
    std::int64_t wait_for_room(std::uint64_t amount, std::uint64_t limit) const;

private:
    // One more than a minute, so that the second under way never shortens it.
    static constexpr std::int64_t seconds = 61;
    void advance(std::int64_t second);
    static std::size_t slot(std::int64_t second) {
        return static_cast<std::size_t>(second % seconds);
    }

    std::array<std::uint64_t, static_cast<std::size_t>(seconds)> amounts_{};
    std::int64_t newest_ = 0;
    std::uint64_t total_ = 0;
};

/// Seconds since an arbitrary moment, and the month since year 0.
struct Moment {
    std::int64_t second = 0;
    std::int64_t month = 0;
};
Moment moment_of(const Clock& clock);
/// The first moment of a wall time's UTC month.
WallTime month_start(WallTime time);

/// The limits and the use of one key.
struct Meter {
    std::optional<std::uint32_t> requests_per_minute;
    std::optional<std::uint32_t> tokens_per_minute;
    std::optional<std::uint32_t> parallel_max;
    std::optional<domain::Money> budget_per_month;

    Window requests;
    Window tokens;
    std::uint32_t parallel = 0;
    domain::Money reserved;
    domain::Money spent;  // in `month`
    std::int64_t month = 0;

    bool limited() const noexcept {
        return requests_per_minute || tokens_per_minute || parallel_max || budget_per_month;
    }
};

/// The meters of a key and its ancestors that have limits.
using Meters = std::vector<std::shared_ptr<Meter>>;

/// What one request holds of each.
struct Held {
    std::uint64_t tokens = 0;
    domain::Money cost;
    std::int64_t second = 0;
};

/// Takes room from all or from none.
/// Errors: rate_limited (with retry_after), exhausted (budget), too_large (more tokens than the key
/// may ever use in a minute).
Result<Held> take(const Meters& meters, std::uint64_t tokens, domain::Money cost, Moment now);
/// Replaces the estimate by what was used.
void settle(const Meters& meters, const Held& held, std::uint64_t tokens, domain::Money cost,
            Moment now);
/// Gives back everything but the count of requests.
void give_back(const Meters& meters, const Held& held);

}  // namespace molly::members::internal
