#pragma once
// Whether one scope lies inside another. Pure.
#include "base/result.h"
#include "members/members.h"

namespace molly::members::internal {

/// Errors: denied, naming the first field of `child` that is wider than `parent`'s.
Result<void> check_narrower(const Scope& child, const Scope& parent);
/// Errors: invalid_request, naming the first field that contradicts another.
Result<void> check_sense(const Scope& scope);

}  // namespace molly::members::internal
