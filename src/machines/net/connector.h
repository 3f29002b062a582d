#pragma once
// Opens every outbound connection. The permit is checked here a second time, beside the socket. No
// Asio here.
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/result.h"
#include "base/task.h"
#include "domain/target.h"
#include "net/http.h"
#include "policy/permit.h"

namespace molly::net {

struct OutboundRequest {
    std::string method = "POST";
    std::string path;  ///< appended to the endpoint's base path
    Headers headers;   ///< host, content-length and connection are added
    std::string body;
    Deadline deadline = Deadline::max();
    CancellationPtr cancellation;
};

/// Takes the reply as it arrives.
class ReplySink {
public:
    virtual ~ReplySink() = default;
    /// Status and headers, once. An error ends the exchange.
    virtual Task<Result<void>> head(int status, const Headers& headers) = 0;
    /// Bytes of the body in order. An error ends the exchange.
    virtual Task<Result<void>> piece(std::string_view bytes) = 0;
};

/// What went over the wire, filled also when the exchange failed.
struct Wire {
    std::uint64_t bytes_sent = 0;      ///< body bytes handed to the socket
    std::uint64_t bytes_received = 0;  ///< body bytes
    bool peer_authenticated = false;
    bool body_accepted =
        false;  ///< the whole request was written: a blind retry could be paid for twice
};

class Connector {
public:
    virtual ~Connector() = default;

    /// One exchange with `target`. Connections are pooled per endpoint and thread; a reused
    /// connection that the peer had closed is replaced once, if no byte of a reply had arrived.
    /// Errors: denied (permit, address class of the tier, pin or certificate), unavailable (nothing
    /// was accepted), upstream_failed (the peer broke off after the body was accepted),
    /// deadline_exceeded, cancelled; or the sink's. An HTTP status is never an error here.
    virtual Task<Result<void>> exchange(const policy::Permit& permit,
                                        const domain::TargetSpec& target, OutboundRequest request,
                                        ReplySink& sink, Wire& wire) = 0;
};

/// A connector on real sockets. Safe from any IO thread.
std::unique_ptr<Connector> make_connector();

}  // namespace molly::net
