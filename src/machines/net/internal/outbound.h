#pragma once
// Opens outbound connections: which transport a tier demands, which addresses it may have.
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>

#include "base/result.h"
#include "base/task.h"
#include "domain/target.h"
#include "net/internal/exchange.h"
#include "net/internal/tls_stream.h"

namespace molly::net::internal {

/// What the target's tier demands before any address is known. Errors: denied, invalid_request.
Result<void> check_transport(const domain::TargetSpec& target);

/// Request line and headers. Errors: invalid_request, when a part would break the line.
Result<std::string> request_head(const domain::TargetSpec& target, const OutboundRequest& request);

/// Resolves, checks each address against the tier, connects, and proves the peer. `settings` is
/// null for a plain endpoint. Errors: denied, unavailable, deadline_exceeded, cancelled.
Task<Result<Link>> connect(Call& call, boost::asio::io_context& io,
                           std::shared_ptr<TlsSettings> settings);

}  // namespace molly::net::internal
