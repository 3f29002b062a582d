#pragma once
// A stream inside TLS, as a client. OpenSSL stays behind it.
#include <memory>
#include <string>

#include "base/result.h"
#include "domain/target.h"
#include "net/internal/stream.h"

namespace molly::net::internal {

/// Certificates and protocol settings; one per set of authorities. Safe from any thread.
class TlsSettings;

/// `ca_file` in PEM; empty: the system's authorities. Errors: unavailable, when it cannot be read.
Result<std::shared_ptr<TlsSettings>> make_tls_settings(const std::string& ca_file);

class SecureStream : public Stream {
public:
    using Stream::Stream;
    /// Proves the peer: by chain and name, by pin, or by both when the endpoint has a pin and its
    /// own authorities. Errors: denied (certificate or pin), unavailable, deadline_exceeded (at
    /// `end`).
    virtual Task<Result<void>> handshake(const domain::Endpoint& endpoint, MonoTime end) = 0;
};

std::shared_ptr<SecureStream> make_secure_stream(boost::asio::io_context& io, std::size_t capacity,
                                                 std::shared_ptr<TlsSettings> settings);

}  // namespace molly::net::internal
