#pragma once
// One outbound exchange: what it knows about itself, and the conversation on an open connection.
#include <memory>
#include <string>

#include "base/cancel.h"
#include "base/result.h"
#include "base/task.h"
#include "net/connector.h"
#include "net/internal/pool.h"
#include "net/internal/stream.h"

namespace molly::net::internal {

/// The connection that a cancellation has to break, whichever it is at the time.
struct Reach {
    std::shared_ptr<Stream> stream;
    bool cancelled = false;
};

/// Breaks the exchange's connection when its caller leaves, from whichever thread that is said.
class CancelGuard {
public:
    CancelGuard(CancellationPtr cancellation, boost::asio::io_context& io,
                const std::shared_ptr<Reach>& reach);

private:
    CancelSubscription subscription_;
};

/// An open connection.
struct Link {
    std::shared_ptr<Stream> stream;
    bool authenticated = false;
};

/// One call of Connector::exchange. Lives in its coroutine.
struct Call {
    Call(const domain::TargetSpec& called, OutboundRequest& asked, ReplySink& taker, Wire& account,
         const ConnectorOptions& chosen)
        : target(called),
          request(asked),
          sink(taker),
          wire(account),
          options(chosen),
          key{called.endpoint, called.tier},
          reach(std::make_shared<Reach>()) {}

    bool cancelled() const {
        return reach->cancelled || (request.cancellation && request.cancellation->cancelled());
    }
    /// Why it was broken off: cancelled or deadline_exceeded.
    Error interrupted() const;
    /// A failure of the peer or the network, under the code that the caller may act on.
    Error failed(std::string_view reason, std::string_view what, std::string_view italian) const;
    /// The failure to open a second connection after a first one was lost.
    Error after_loss(Error second) const;
    /// Whether the overall deadline has passed.
    bool late() const { return std::chrono::steady_clock::now() >= request.deadline; }

    const domain::TargetSpec& target;
    OutboundRequest& request;
    ReplySink& sink;
    Wire& wire;
    const ConnectorOptions& options;
    PoolKey key;
    std::shared_ptr<Reach> reach;
    std::string head;
    bool replaceable = false;  ///< the peer had closed the reused connection before it answered
    bool reusable = false;     ///< the connection may carry another exchange
};

/// Sends the request and passes the reply on as it arrives. Errors: as Connector::exchange.
Task<Result<void>> converse(Call& call, Link& link, bool reused);

}  // namespace molly::net::internal
