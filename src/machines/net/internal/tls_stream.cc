#include "net/internal/tls_stream.h"

#include <array>
#include <chrono>
#include <utility>

#include <boost/asio/error.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

namespace molly::net::internal {

namespace asio = boost::asio;
namespace ssl = boost::asio::ssl;

class TlsSettings {
public:
    ssl::context context{ssl::context::tls_client};
};

namespace {

struct FreeCertificate {
    void operator()(X509* certificate) const noexcept { X509_free(certificate); }
};

/// SHA-256 of the public key in base64 (RFC 7469, 2.4); empty on failure.
std::string pin_of(X509* certificate) {
    unsigned char* der = nullptr;
    const int length = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &der);
    if (length <= 0) return {};
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned int digest_bytes = 0;
    const int done = EVP_Digest(der, static_cast<std::size_t>(length), digest.data(), &digest_bytes,
                                EVP_sha256(), nullptr);
    OPENSSL_free(der);
    if (done != 1) return {};
    std::array<unsigned char, 64> text{};
    const int text_bytes =
        EVP_EncodeBlock(text.data(), digest.data(), static_cast<int>(digest_bytes));
    return {text.begin(), text.begin() + text_bytes};
}

Error refused(const domain::Endpoint& endpoint, std::string_view reason, std::string_view what,
              std::string_view italian) {
    return Error(ErrorCode::denied, fmt::format("{}: {}", to_string(endpoint), what))
        .reason(std::string(reason))
        .italian(fmt::format("{}: {}", to_string(endpoint), italian));
}

class TlsStream final : public SecureStream {
public:
    TlsStream(asio::io_context& io, std::size_t capacity, std::shared_ptr<TlsSettings> settings)
        : SecureStream(io, capacity),
          settings_(std::move(settings)),
          tls_(socket_, settings_->context) {}

    Task<Result<void>> handshake(const domain::Endpoint& endpoint, MonoTime end) override;
    ErrorOfSystem send_now(Buffers& buffers) override {
        return buffers.size() == 0 ? ErrorOfSystem() : asio::error::would_block;
    }
    Task<ErrorOfSystem> send(Buffers& buffers, Duration idle, MonoTime end) override;

private:
    void start_read(asio::mutable_buffer into) override;
    Result<void> prepare(const domain::Endpoint& endpoint);
    Result<void> check_pin(const domain::Endpoint& endpoint);
    std::shared_ptr<TlsStream> self() {
        return std::static_pointer_cast<TlsStream>(shared_from_this());
    }

    std::shared_ptr<TlsSettings> settings_;
    ssl::stream<Socket&> tls_;
    ErrorOfSystem result_;     // of the write or handshake that ended last
    std::size_t written_ = 0;  // by it
};

void TlsStream::start_read(asio::mutable_buffer into) {
    tls_.async_read_some(into, [kept = self()](const ErrorOfSystem& error, std::size_t count) {
        kept->read_done(error, count);
    });
}

Task<ErrorOfSystem> TlsStream::send(Buffers& buffers, Duration idle, MonoTime end) {
    while (buffers.size() > 0) {
        deadline(std::min(end, std::chrono::steady_clock::now() + idle));
        tls_.async_write_some(buffers.parts(),
                              [kept = self()](const ErrorOfSystem& error, std::size_t count) {
                                  kept->result_ = error;
                                  kept->written_ = count;
                                  kept->write_gate_.open();
                              });
        co_await write_gate_.wait();
        if (timed_out_) co_return asio::error::timed_out;
        if (result_) co_return result_;
        buffers.consume(written_);
    }
    co_return ErrorOfSystem();
}

Result<void> TlsStream::prepare(const domain::Endpoint& endpoint) {
    SSL* handle = tls_.native_handle();
    static constexpr std::string_view protocol = "\x08http/1.1";
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): OpenSSL counts in unsigned chars
    SSL_set_alpn_protos(handle, reinterpret_cast<const unsigned char*>(protocol.data()),
                        static_cast<unsigned>(protocol.size()));
    ErrorOfSystem not_an_address;
    asio::ip::make_address(endpoint.host, not_an_address);
    const bool named = static_cast<bool>(not_an_address);
    if (named) SSL_set_tlsext_host_name(handle, endpoint.host.c_str());
    const bool pin_alone = !endpoint.pin.empty() && endpoint.ca_file.empty();
    if (pin_alone) {
        SSL_set_verify(handle, SSL_VERIFY_NONE, nullptr);
        return {};
    }
    SSL_set_verify(handle, SSL_VERIFY_PEER, nullptr);
    const int set =
        named ? SSL_set1_host(handle, endpoint.host.c_str())
              : X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(handle), endpoint.host.c_str());
    if (set != 1) return fail(ErrorCode::internal, "the name of the peer could not be set");
    return {};
}

Result<void> TlsStream::check_pin(const domain::Endpoint& endpoint) {
    if (endpoint.pin.empty()) return {};
    const std::unique_ptr<X509, FreeCertificate> certificate(
        SSL_get1_peer_certificate(tls_.native_handle()));
    std::string_view wanted = endpoint.pin;
    if (wanted.starts_with("sha256/")) wanted.remove_prefix(7);
    if (certificate && pin_of(certificate.get()) == wanted) return {};
    return fail(refused(endpoint, "pin_mismatch",
                        "the peer's key is not the pinned one; nothing was sent. Pin the new key "
                        "if it was changed on purpose",
                        "la chiave del server non è quella fissata; nulla è stato inviato. "
                        "Fissare la nuova chiave se il cambio è voluto"));
}

Task<Result<void>> TlsStream::handshake(const domain::Endpoint& endpoint, MonoTime end) {
    CO_TRY_DO(prepare(endpoint));
    deadline(end);
    tls_.async_handshake(ssl::stream_base::client, [kept = self()](const ErrorOfSystem& error) {
        kept->result_ = error;
        kept->write_gate_.open();
    });
    co_await write_gate_.wait();
    if (timed_out_)
        co_return fail(ErrorCode::deadline_exceeded,
                       fmt::format("{}: no TLS handshake in time", to_string(endpoint)));
    if (!result_) co_return check_pin(endpoint);
    const long verdict = SSL_get_verify_result(tls_.native_handle());
    if (verdict != X509_V_OK) {
        const char* why = X509_verify_cert_error_string(verdict);
        co_return fail(refused(endpoint, "certificate_rejected",
                               fmt::format("the peer's certificate is not accepted ({}); nothing "
                                           "was sent. Name its authority in ca_file or pin its key",
                                           why),
                               fmt::format("il certificato del server non è accettato ({}); nulla "
                                           "è stato inviato. Indicare la sua autorità in ca_file "
                                           "o fissarne la chiave",
                                           why)));
    }
    co_return fail(ErrorCode::unavailable, fmt::format("{}: TLS handshake failed: {}",
                                                       to_string(endpoint), result_.message()));
}

}  // namespace

Result<std::shared_ptr<TlsSettings>> make_tls_settings(const std::string& ca_file) {
    auto settings = std::make_shared<TlsSettings>();
    SSL_CTX_set_min_proto_version(settings->context.native_handle(), TLS1_2_VERSION);
    ErrorOfSystem error;
    if (ca_file.empty()) {
        settings->context.set_default_verify_paths(error);
    } else {
        settings->context.load_verify_file(ca_file, error);
    }
    if (error)
        return fail(Error(ErrorCode::unavailable,
                          fmt::format("cannot read the certificate authorities in '{}': {}",
                                      ca_file, error.message()))
                        .italian(fmt::format("impossibile leggere le autorità in '{}': {}", ca_file,
                                             error.message())));
    return settings;
}

std::shared_ptr<SecureStream> make_secure_stream(asio::io_context& io, std::size_t capacity,
                                                 std::shared_ptr<TlsSettings> settings) {
    return std::make_shared<TlsStream>(io, capacity, std::move(settings));
}

}  // namespace molly::net::internal
