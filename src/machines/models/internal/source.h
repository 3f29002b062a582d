#pragma once
// Where a download goes: sources and redirects as targets. Pure.
#include <string>

#include "base/result.h"
#include "domain/target.h"
#include "models/catalogue.h"

namespace molly::models::internal {

/// An absolute address, split for a Connector.
struct Place {
    domain::TargetSpec target;
    std::string path;  ///< with the query
    std::string url;   ///< the whole of it
    bool loopback = false;
};

/// Errors: invalid_request (no https URL, no `hf:` source), denied (http beyond the loopback).
Result<Place> place_of(const PullOptions& options);
/// Where a redirect of `from` leads. Errors: upstream_failed (no address), denied (http beyond the
/// loopback, or onto the loopback from elsewhere).
Result<Place> redirected(const Place& from, const std::string& location,
                         const PullOptions& options);

}  // namespace molly::models::internal
