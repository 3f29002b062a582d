#pragma once
// Who may knock: protection against foreign web pages, and the key that a request presents. Pure.
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/http.h"

namespace molly::gateway {

/// Refuses what a web page could send without its user's will: a Host that is neither an address
/// nor `localhost` nor one of `hosts` (DNS rebinding), an Origin that is neither the host itself
/// nor one of `origins`. Errors: denied (foreign_host, foreign_origin).
Result<void> check_browser(const net::Headers& headers, const std::vector<std::string>& hosts,
                           const std::vector<std::string>& origins);

/// What a page of an allowed origin needs to read the answer; empty for others.
net::Headers cors_headers(const net::Headers& headers, const std::vector<std::string>& origins);

/// The key in `Authorization: Bearer` or `x-api-key`, or empty.
std::string_view presented_key(const net::Headers& headers) noexcept;

/// Whether an address is this machine's own.
bool is_loopback(std::string_view peer) noexcept;

/// Whether the caller is on this machine: a proxy here that passes on what others send is not.
bool is_here(const net::HttpRequest& request) noexcept;

}  // namespace molly::gateway
