#pragma once
// What the tests of the server share.
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/coroutine.h"
#include "base/json.h"
#include "net/internal/raw_peer.h"
#include "net/server.h"

namespace molly::net::internal {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool memory_is_ours = false;  // a sanitizer keeps freed memory
#else
inline constexpr bool memory_is_ours = true;
#endif

/// Answers `METHOD path?query body`.
inline Task<void> echo(HttpRequest& request, Responder& responder) {
    HttpReply reply;
    reply.headers.emplace_back("content-type", "text/plain");
    reply.body = request.method + " " + request.path + "?" + request.query + " " + request.body;
    const Result<void> sent = co_await responder.reply(std::move(reply));
    EXPECT_TRUE(sent || sent.error().code() == ErrorCode::cancelled);
}

inline Task<void> count_body(HttpRequest& request, Responder& responder) {
    HttpReply reply;
    reply.body = std::to_string(request.body.size());
    const Result<void> sent = co_await responder.reply(std::move(reply));
    EXPECT_TRUE(sent);
}

class ServerTest : public ::testing::Test {
protected:
    void listen(Handler handler, ServerOptions options = {}) {
        options.port = 0;
        auto server = Server::listen(options, threads_, std::move(handler));
        ASSERT_TRUE(server) << server.error().message();
        server_ = *std::move(server);
    }
    RawPeer client() { return RawPeer::connect(server_->port()); }
    /// What the server says to `bytes` until it closes.
    std::string answer(std::string_view bytes) {
        RawPeer peer = client();
        peer.send(bytes);
        return peer.read_to_end();
    }
    void expect_alive() {
        RawPeer peer = client();
        peer.send("GET /alive HTTP/1.1\r\nHost: x\r\n\r\n");
        EXPECT_THAT(peer.read_message(), ::testing::StartsWith("HTTP/1.1 200"));
    }

    IoThreads threads_{2};
    std::unique_ptr<Server> server_;
};

/// The body is JSON in the neutral shape, with that code.
inline void expect_error(const std::string& reply, std::string_view status, std::string_view code) {
    EXPECT_THAT(reply, ::testing::StartsWith("HTTP/1.1 " + std::string(status)));
    const auto body = reply.find("\r\n\r\n");
    ASSERT_NE(body, std::string::npos) << reply;
    const auto parsed = parse_json(std::string_view(reply).substr(body + 4));
    ASSERT_TRUE(parsed) << reply;
    EXPECT_EQ(parsed->at("error").at("code").as_string(), code);
    EXPECT_FALSE(parsed->at("error").at("message").as_string().empty());
    EXPECT_THAT(reply, ::testing::HasSubstr("connection: close\r\n"));
}

}  // namespace molly::net::internal
