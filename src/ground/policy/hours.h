#pragma once
// When a rule holds: hours and weekdays in a stated zone. Pure values.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace molly::policy {

/// Minutes from midnight, weekdays and zone. The default holds always.
struct Hours {
    std::uint16_t from = 0;
    std::uint16_t until = 24 * 60;  ///< excluded; before `from`: the span goes over midnight
    std::uint8_t weekdays = 0x7F;   ///< bit 0 is Monday
    std::int16_t offset = 0;        ///< of the zone's winter time from UTC, minutes
    bool european_summer = false;   ///< an hour more from the last Sunday of March to October's
                                    ///< last, 01:00 UTC (Directive 2000/84/EC)
    std::string zone = {};          ///< as it was written

    bool contains(WallTime time) const noexcept;
    bool operator==(const Hours&) const = default;
};

/// `"08:00-19:00"` (empty: all day), `{"mon", "fri"}` (empty: every day), and `UTC`, `+01:00` or a
/// European zone such as `Europe/Rome`. Errors: invalid_request, with what is wrong.
Result<Hours> hours_from(std::string_view hours, const std::vector<std::string>& weekdays,
                         std::string_view zone);

}  // namespace molly::policy
