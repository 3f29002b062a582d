#pragma once
// Traces, decisions and keys as JSON for people and programs. Pure.
#include <string>

#include "base/json.h"
#include "domain/trace.h"
#include "members/members.h"
#include "router/router.h"

namespace molly::gateway {

/// RFC 3339 in UTC with milliseconds.
std::string to_time(WallTime time);
/// Errors: invalid_request.
Result<WallTime> time_from(std::string_view text);

json::object to_json(const domain::Decision& decision);
json::object to_json(const domain::CapabilityProfile& needs);
json::object to_json(const domain::Trace& trace);
json::object to_json(const router::TargetView& view);
json::object to_json(const members::Key& key);
json::object to_json(const domain::Label& label);

}  // namespace molly::gateway
