#pragma once
// Whether the alternatives of a `oneOf` exclude each other. Pure.
#include <string_view>

#include "base/json.h"

namespace molly::engine {

/// Whether `node` lists `name` under `required`.
bool requires_property(const json::object& node, std::string_view name);

/// True when no document satisfies two of the schemas, as far as their types, fixed values and
/// required properties with fixed values show. References are looked up in `root`.
bool alternatives_differ(const json::array& schemas, const json::value& root);

}  // namespace molly::engine
