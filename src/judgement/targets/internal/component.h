#pragma once
// Typed specialists: what their manifest says for callers who do not say it. Pure.
#include "adapters/manifest.h"
#include "domain/request.h"

namespace molly::targets {

/// A chat without system text, tools and format of its own gets the specialist's instructions and
/// the form of its answers; any other request stays as it is.
domain::Request as_component(const domain::Request& request, const adapters::Component& component);

}  // namespace molly::targets
