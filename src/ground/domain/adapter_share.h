#pragma once
// How a request names the adapters that it wants, several at once with their strengths. Pure.
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace molly::domain {

/// One of the adapters of a request; their deltas add up.
struct AdapterShare {
    std::string name;  ///< `law` or `law@1.0.0`
    float scale = 1;

    bool operator==(const AdapterShare&) const = default;
};

inline constexpr std::size_t adapter_shares_max = 8;
/// Up and down. An adapter is trained at 1; far beyond that its delta drowns the base's answer.
inline constexpr float adapter_scale_max = 2;

/// `law`, `law@1.0.0*0.5,style*-1`: nothing is resolved. The bound holds for all shares of one name
/// together. Errors: invalid_request.
Result<std::vector<AdapterShare>> adapter_shares_from(std::string_view text);
/// The same back; a scale of 1 is left out.
std::string to_string(const std::vector<AdapterShare>& shares);

}  // namespace molly::domain
