#pragma once
// Opens every outbound connection. The permit is checked here a second time, beside the socket. No
// Asio here.
#include <chrono>
#include <cstddef>
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
    std::uint64_t reply_bytes_max =
        UINT64_MAX;  ///< of the body; more is upstream_failed. Pieces are passed on as they come
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
    /// was accepted), upstream_failed (the peer broke off after the body was accepted, or its reply
    /// was no HTTP), invalid_request (a header that would break its line), deadline_exceeded,
    /// cancelled; or the sink's. An HTTP status is never an error here.
    virtual Task<Result<void>> exchange(const policy::Permit& permit,
                                        const domain::TargetSpec& target, OutboundRequest request,
                                        ReplySink& sink, Wire& wire) = 0;
};

struct ConnectorOptions {
    std::size_t header_bytes_max = 32U << 10U;      ///< of a reply
    std::size_t idle_max = 64;                      ///< kept connections per endpoint and thread
    std::chrono::milliseconds idle_expiry{30'000};  ///< a kept connection is closed after that
};

/// A connector on real sockets. Safe from any IO thread; outlives its exchanges.
std::unique_ptr<Connector> make_connector(const ConnectorOptions& options = {});

}  // namespace molly::net
