#include <cstdio>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "net/internal/connector_fixture.h"

namespace molly::net {
namespace {

using domain::Tier;
using internal::ConnectorTest;
using internal::RawPeer;
using internal::RawServer;
using internal::Went;
using std::chrono::milliseconds;

template <auto release>
struct Free {
    template <class T>
    void operator()(T* held) const {
        release(held);
    }
};
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Free<X509_free>>;

/// A self-signed certificate made on the spot.
struct Identity {
    Key key;
    Certificate certificate;
    std::string pin;
    std::filesystem::path file;

    explicit Identity(const std::string& names)
        : key(EVP_EC_gen("P-256")), certificate(X509_new()) {
        X509* x509 = certificate.get();
        X509_set_version(x509, 2);
        ASN1_INTEGER_set(X509_get_serialNumber(x509), 1);
        X509_gmtime_adj(X509_getm_notBefore(x509), -60);
        X509_gmtime_adj(X509_getm_notAfter(x509), 3600);
        X509_set_pubkey(x509, key.get());
        const unsigned char name[] = "molly test";
        X509_NAME_add_entry_by_txt(X509_get_subject_name(x509), "CN", MBSTRING_ASC, name, -1, -1,
                                   0);
        X509_set_issuer_name(x509, X509_get_subject_name(x509));
        X509_EXTENSION* extension =
            X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, names.c_str());
        X509_add_ext(x509, extension, -1);
        X509_EXTENSION_free(extension);
        X509_sign(x509, key.get(), EVP_sha256());
        unsigned char* der = nullptr;
        const int length = i2d_PUBKEY(key.get(), &der);
        unsigned char digest[32];
        EVP_Digest(der, static_cast<std::size_t>(length), digest, nullptr, EVP_sha256(), nullptr);
        OPENSSL_free(der);
        unsigned char text[64];
        EVP_EncodeBlock(text, digest, sizeof(digest));
        pin = reinterpret_cast<const char*>(text);
        static int made = 0;
        file = std::filesystem::temp_directory_path() /
               ("molly-net-test-" + std::to_string(::getpid()) + "-" + std::to_string(++made) +
                ".pem");
        std::FILE* out = std::fopen(file.c_str(), "w");
        PEM_write_X509(out, x509);
        std::fclose(out);
    }
    Identity(const Identity&) = delete;
    Identity& operator=(const Identity&) = delete;
    Identity(Identity&&) = delete;
    Identity& operator=(Identity&&) = delete;
    ~Identity() { std::filesystem::remove(file); }
};

/// Speaks TLS on each connection: answers every request with `reply`, and says goodbye or not.
class SecureServer {
public:
    SecureServer(const Identity& identity, std::string reply, bool goodbye = true)
        : context_(SSL_CTX_new(TLS_server_method())),
          server_([this, answer = std::move(reply), goodbye](RawPeer& peer) {
              serve(peer, answer, goodbye);
          }) {
        SSL_CTX_use_certificate(context_.get(), identity.certificate.get());
        SSL_CTX_use_PrivateKey(context_.get(), identity.key.get());
    }
    std::uint16_t port() const { return server_.port(); }
    int accepted() const { return server_.accepted(); }
    std::size_t received() const { return received_; }

private:
    void serve(RawPeer& peer, const std::string& reply, bool goodbye) {
        const std::unique_ptr<SSL, Free<SSL_free>> tls(SSL_new(context_.get()));
        SSL_set_fd(tls.get(), peer.descriptor());
        if (SSL_accept(tls.get()) != 1) return;
        char buffer[4096];
        for (int count = 0; (count = SSL_read(tls.get(), buffer, sizeof(buffer))) > 0;) {
            received_ += static_cast<std::size_t>(count);
            if (!std::string_view(buffer, static_cast<std::size_t>(count)).ends_with("{}"))
                continue;
            SSL_write(tls.get(), reply.data(), static_cast<int>(reply.size()));
            if (reply.find("ontent-Length") == std::string::npos) break;
        }
        if (goodbye) SSL_shutdown(tls.get());
    }

    std::atomic<std::size_t> received_ = 0;
    std::unique_ptr<SSL_CTX, Free<SSL_CTX_free>> context_;
    RawServer server_;
};

constexpr const char* reply_text = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

class ConnectorTlsTest : public ConnectorTest {
protected:
    static domain::TargetSpec secure(std::uint16_t port) {
        domain::TargetSpec target = at(port, Tier::t2);
        target.endpoint.tls = true;
        return target;
    }
    void expect_denied(const domain::TargetSpec& target, std::string_view reason) {
        const Went went = run(target);
        ASSERT_FALSE(went.result);
        EXPECT_EQ(went.result.error().code(), ErrorCode::denied);
        EXPECT_EQ(went.result.error().reason(), reason);
        EXPECT_EQ(went.wire.bytes_sent, 0U);
        EXPECT_FALSE(went.wire.peer_authenticated);
    }

    Identity identity_{"IP:127.0.0.1,DNS:localhost"};
    Identity stranger_{"IP:127.0.0.1,DNS:localhost"};
};

TEST_F(ConnectorTlsTest, ProvesThePeerByItsAuthority) {
    SecureServer server(identity_, reply_text);
    auto target = secure(server.port());
    target.endpoint.ca_file = identity_.file;
    for (int i = 0; i < 3; ++i) {
        const Went went = run(target);
        ASSERT_TRUE(went.result) << went.result.error().message();
        EXPECT_EQ(went.sink.body, "hello");
        EXPECT_TRUE(went.wire.peer_authenticated);
    }
    EXPECT_EQ(server.accepted(), 1);
    target.endpoint.host = "localhost";
    EXPECT_TRUE(run(target).result);
    EXPECT_EQ(server.accepted(), 2);
}

TEST_F(ConnectorTlsTest, RefusesAPeerThatProvesNothingAndSendsItNothing) {
    SecureServer server(identity_, reply_text);
    auto target = secure(server.port());
    expect_denied(target, "certificate_rejected");  // the system does not know it
    target.endpoint.ca_file = stranger_.file;
    expect_denied(target, "certificate_rejected");
    EXPECT_EQ(server.received(), 0U);
    Identity other_name("DNS:other.example");
    SecureServer misnamed(other_name, reply_text);
    target = secure(misnamed.port());
    target.endpoint.ca_file = other_name.file;
    expect_denied(target, "certificate_rejected");
    target.endpoint.ca_file = "/nowhere/authorities.pem";
    EXPECT_EQ(run(target).result.error().code(), ErrorCode::unavailable);
}

TEST_F(ConnectorTlsTest, ProvesThePeerByItsPin) {
    SecureServer server(identity_, reply_text);
    auto target = secure(server.port());
    target.endpoint.pin = identity_.pin;
    const Went went = run(target);
    ASSERT_TRUE(went.result) << went.result.error().message();
    EXPECT_TRUE(went.wire.peer_authenticated);
    const std::size_t before = server.received();
    target.endpoint.pin = stranger_.pin;  // another pin never gets the pooled connection
    expect_denied(target, "pin_mismatch");
    target.endpoint.ca_file = identity_.file;  // both are asked for
    expect_denied(target, "pin_mismatch");
    target.endpoint.pin = "sha256/" + identity_.pin;
    EXPECT_TRUE(run(target).result);
    target.endpoint.ca_file = stranger_.file;
    expect_denied(target, "certificate_rejected");
    EXPECT_LT(server.received(), before * 3);
}

TEST_F(ConnectorTlsTest, AMissingGoodbyeIsATruncatedReply) {
    for (const bool goodbye : {true, false}) {
        SecureServer server(identity_, "HTTP/1.1 200 OK\r\n\r\nhello", goodbye);
        auto target = secure(server.port());
        target.endpoint.pin = identity_.pin;
        const Went went = run(target);
        EXPECT_EQ(went.sink.body, "hello");
        EXPECT_EQ(went.result.has_value(), goodbye);
        if (!goodbye) {
            EXPECT_EQ(went.result.error().code(), ErrorCode::upstream_failed);
        }
    }
}

TEST_F(ConnectorTlsTest, APeerWithoutTlsIsUnavailable) {
    RawServer plain([](RawPeer& peer) {
        peer.receive();
        peer.send("HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    auto target = secure(plain.port());
    target.endpoint.pin = identity_.pin;
    EXPECT_EQ(run(target).result.error().code(), ErrorCode::unavailable);
    RawServer silent([](RawPeer& peer) { peer.read_to_end(); });
    target.endpoint.port = silent.port();
    target.connect_timeout = milliseconds(80);
    const Went went = run(target);
    EXPECT_EQ(went.result.error().code(), ErrorCode::unavailable);
    EXPECT_EQ(went.result.error().reason(), "connect_timeout");
}

}  // namespace
}  // namespace molly::net
