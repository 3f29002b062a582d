#include "net/connector.h"

#include <atomic>
#include <chrono>
#include <future>
#include <latch>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/internal/connector_fixture.h"

namespace molly::net {
namespace {

using domain::Tier;
using internal::ConnectorTest;
using internal::RawPeer;
using internal::RawServer;
using internal::Went;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::string_view plain_reply =
    "HTTP/1.1 200 OK\r\nX-Thing: One\r\nContent-Length: 5\r\n\r\nhello";

/// Answers every request of a connection with `reply`.
RawServer::Serve always(std::string reply) {
    return [reply](RawPeer& peer) {
        while (!peer.read_message().empty()) {
            if (!peer.send(reply)) return;
        }
    };
}

/// Answers the first request with `reply`, then closes.
RawServer::Serve once(std::string reply) {
    return [reply](RawPeer& peer) {
        peer.read_message();
        peer.send(reply);
    };
}

TEST_F(ConnectorTest, SendsOneRequestAndPassesTheReplyOn) {
    std::promise<std::string> seen;
    RawServer server([&](RawPeer& peer) {
        seen.set_value(peer.read_message());
        peer.send(plain_reply);
    });
    const Went went = run(at(server.port()), post("{\"a\":1}"));
    ASSERT_TRUE(went.result) << went.result.error().message();
    EXPECT_EQ(seen.get_future().get(),
              "POST /v1/chat HTTP/1.1\r\nhost: 127.0.0.1:" + std::to_string(server.port()) +
                  "\r\ncontent-type: application/json\r\ncontent-length: 7\r\n\r\n{\"a\":1}");
    EXPECT_EQ(went.sink.status, 200);
    EXPECT_EQ(header(went.sink.fields, "x-thing"), "One");
    EXPECT_EQ(went.sink.body, "hello");
    EXPECT_EQ(went.wire.bytes_sent, 7U);
    EXPECT_EQ(went.wire.bytes_received, 5U);
    EXPECT_TRUE(went.wire.body_accepted);
    EXPECT_FALSE(went.wire.peer_authenticated);
}

TEST_F(ConnectorTest, ReusesConnectionsAndResolvesNames) {
    RawServer server(always(std::string(plain_reply)));
    for (int i = 0; i < 5; ++i)
        EXPECT_EQ(run(at(server.port())).sink.body, "hello");
    EXPECT_EQ(server.accepted(), 1);
    auto named = at(server.port());
    named.endpoint.host = "localhost";
    for (int i = 0; i < 2; ++i) {
        const Went went = run(named);
        EXPECT_TRUE(went.result) << went.result.error().message();
    }
    EXPECT_EQ(server.accepted(), 2);  // another name is another endpoint
    auto nowhere = at(server.port());
    nowhere.endpoint.host = "no-such-name.invalid";
    nowhere.connect_timeout = milliseconds(2000);
    EXPECT_EQ(run(nowhere).result.error().code(), ErrorCode::unavailable);
}

TEST_F(ConnectorTest, ReadsEveryFraming) {
    for (const std::string reply :
         {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nT: "
          "1\r\n\r\n",
          "HTTP/1.1 200 OK\r\n\r\nhello", "HTTP/1.0 200 OK\r\nConnection: close\r\n\r\nhello",
          "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 200 "
          "OK\r\nContent-Length: 5\r\n\r\nhello"}) {
        RawServer server(once(reply));
        const Went went = run(at(server.port()));
        EXPECT_TRUE(went.result) << reply;
        EXPECT_EQ(went.sink.body, "hello");
        EXPECT_EQ(went.wire.bytes_received, 5U);
    }
    for (const std::string reply :
         {"HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"}) {
        RawServer server(always(reply));
        EXPECT_TRUE(run(at(server.port())).result);
        EXPECT_TRUE(run(at(server.port())).result);
        EXPECT_EQ(server.accepted(), 1);
    }
    RawServer server(always("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"));
    OutboundRequest request = post("");
    request.method = "HEAD";
    EXPECT_TRUE(run(at(server.port()), std::move(request)).result);
}

TEST_F(ConnectorTest, AReplyCutShortIsAFailureOfTheUpstream) {
    const std::string chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (const std::string& reply :
         {std::string("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello"),
          chunked + "5\r\nhello\r\n", chunked + "5\r\nhel", chunked + "5\r\nhello\r\n0\r\n",
          chunked + "5\r\nhelloXX5\r\n", chunked + "zz\r\nhello\r\n0\r\n\r\n",
          std::string("HTTP/1.1 200 OK\r\nContent-"), std::string("SSH-2.0-OpenSSH\r\n"),
          std::string("HTTP/1.1 101 Switching Protocols\r\n\r\n"), std::string()}) {
        SCOPED_TRACE(reply);
        RawServer server(once(reply));
        const Went went = run(at(server.port()));
        ASSERT_FALSE(went.result);
        EXPECT_EQ(went.result.error().code(), ErrorCode::upstream_failed);
        EXPECT_TRUE(went.wire.body_accepted);
        EXPECT_EQ(server.accepted(), 1);  // a fresh connection is not tried again
    }
}

TEST_F(ConnectorTest, SilenceIsBoundedAndSoIsTheWhole) {
    std::promise<void> over;
    auto ended = over.get_future().share();
    RawServer server([ended](RawPeer& peer) {
        peer.read_message();
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhel");
        while (ended.wait_for(milliseconds(20)) != std::future_status::ready)
            peer.send("");
    });
    auto target = at(server.port());
    target.idle_timeout = milliseconds(60);
    Went went = run(target);
    EXPECT_EQ(went.result.error().code(), ErrorCode::upstream_failed);
    EXPECT_EQ(went.sink.body, "hel");
    target.idle_timeout = milliseconds(5000);
    OutboundRequest request = post();
    request.deadline = steady_clock::now() + milliseconds(60);
    EXPECT_EQ(run(target, std::move(request)).result.error().code(), ErrorCode::deadline_exceeded);
    over.set_value();
}

TEST_F(ConnectorTest, ReplacesAReusedConnectionThatThePeerHadClosed) {
    // Closes after each reply without saying so, as servers do with idle connections.
    std::atomic<int> requests = 0;
    RawServer server([&](RawPeer& peer) {
        if (peer.read_message().empty()) return;
        ++requests;
        peer.send(plain_reply);
        if (requests == 1) peer.read_message();  // takes the next request and never answers
    });
    EXPECT_TRUE(run(at(server.port())).result);
    const Went second = run(at(server.port()), post("{\"b\":2}"));
    EXPECT_TRUE(second.result) << second.result.error().message();
    EXPECT_EQ(server.accepted(), 2);
    EXPECT_EQ(second.wire.bytes_sent, 14U);  // both sendings count
    std::this_thread::sleep_for(milliseconds(30));
    EXPECT_TRUE(run(at(server.port())).result);  // its end was noticed while it was idle
    EXPECT_EQ(server.accepted(), 3);
}

TEST_F(ConnectorTest, DoesNotRepeatARequestThatMayHaveBeenWorkedOn) {
    std::atomic<int> requests = 0;
    RawServer server([&](RawPeer& peer) {
        while (!peer.read_message().empty()) {
            if (++requests == 2) {
                peer.send("HTTP/1.1 200 OK\r\n");
                return;
            }
            peer.send(plain_reply);
        }
    });
    EXPECT_TRUE(run(at(server.port())).result);
    EXPECT_EQ(run(at(server.port())).result.error().code(), ErrorCode::upstream_failed);
    EXPECT_EQ(requests, 2);
    EXPECT_EQ(server.accepted(), 1);
}

TEST_F(ConnectorTest, NothingThereIsUnavailable) {
    std::uint16_t port = 0;
    {
        RawServer gone(always(""));
        port = gone.port();
    }
    const Went went = run(at(port));
    EXPECT_EQ(went.result.error().code(), ErrorCode::unavailable);
    EXPECT_EQ(went.result.error().reason(), "connect_failed");
    EXPECT_FALSE(went.wire.body_accepted);
    EXPECT_EQ(went.wire.bytes_sent, 0U);
}

TEST_F(ConnectorTest, AsksThePermitAndTheTierBeforeAnySocket) {
    RawServer server(always(std::string(plain_reply)));
    auto denied_for = [&](const domain::TargetSpec& target, domain::Sensitivity sensitivity) {
        Went went;
        run(target, post(), went, permit(sensitivity));
        EXPECT_FALSE(went.result);
        EXPECT_EQ(went.result.error().code(), ErrorCode::denied);
        EXPECT_EQ(went.wire.bytes_sent, 0U);
        return went.result ? std::string() : went.result.error().reason();
    };
    const auto open = domain::Sensitivity::public_;
    EXPECT_EQ(denied_for(at(server.port()), domain::Sensitivity::secret), "tier_not_permitted");
    EXPECT_EQ(denied_for(at(server.port(), Tier::t0), open), "no_socket_for_t0");
    EXPECT_EQ(denied_for(at(server.port(), Tier::t2), open), "tls_required");
    EXPECT_EQ(denied_for(at(server.port(), Tier::t3), open), "tls_required");
    auto elsewhere = at(server.port());
    for (const std::string host : {"203.0.113.9", "8.8.8.8", "0.0.0.0", "172.32.0.1", "100.64.0.1",
                                   "2001:db8::1", "[::ffff:8.8.8.8]", "::"}) {
        elsewhere.endpoint.host = host;
        EXPECT_EQ(denied_for(elsewhere, open), "address_class") << host;
    }
    EXPECT_EQ(server.accepted(), 0);
}

TEST_F(ConnectorTest, RefusesWhatWouldBreakItsLine) {
    RawServer server(always(std::string(plain_reply)));
    OutboundRequest header = post();
    header.headers.emplace_back("authorization", "Bearer x\r\nX-Injected: 1");
    OutboundRequest path = post();
    path.path = "/a HTTP/1.1\r\nX: y";
    EXPECT_EQ(run(at(server.port()), std::move(header)).result.error().code(),
              ErrorCode::invalid_request);
    EXPECT_EQ(run(at(server.port()), std::move(path)).result.error().code(),
              ErrorCode::invalid_request);
    EXPECT_EQ(server.accepted(), 0);
}

TEST_F(ConnectorTest, CancellationClosesTheSocketAtOnce) {
    std::promise<void> asked;
    std::promise<steady_clock::time_point> closed;
    RawServer server([&](RawPeer& peer) {
        peer.read_message();
        asked.set_value();
        EXPECT_EQ(peer.receive(), "");
        closed.set_value(steady_clock::now());
    });
    OutboundRequest request = post();
    request.cancellation = std::make_shared<Cancellation>();
    const auto cancellation = request.cancellation;
    auto target = at(server.port());
    target.idle_timeout = milliseconds(5000);
    steady_clock::time_point left;
    std::thread caller([&] {
        asked.get_future().wait();
        left = steady_clock::now();
        cancellation->cancel();
    });
    const Went went = run(target, std::move(request));
    caller.join();
    EXPECT_EQ(went.result.error().code(), ErrorCode::cancelled);
    EXPECT_LT(closed.get_future().get() - left, milliseconds(200));
    OutboundRequest late = post();
    late.cancellation = cancellation;
    EXPECT_EQ(run(target, std::move(late)).result.error().code(), ErrorCode::cancelled);
    EXPECT_EQ(server.accepted(), 1);
}

TEST_F(ConnectorTest, HearsAnAnswerThatComesBeforeTheWholeRequestIsSent) {
    RawServer server([](RawPeer& peer) {
        peer.read_until("\r\n\r\n");
        peer.send("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno");
        peer.finish_sending();
        peer.read_to_end();
    });
    const Went went = run(at(server.port()), post(std::string(4U << 20U, 'x')));
    ASSERT_TRUE(went.result) << went.result.error().message();
    EXPECT_EQ(went.sink.status, 413);
    EXPECT_EQ(went.sink.body, "no");
}

TEST_F(ConnectorTest, PassesLargeRepliesOnInBoundedPieces) {
    constexpr std::size_t megabytes = 64;
    RawServer server([](RawPeer& peer) {
        peer.read_message();
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(megabytes << 20U) +
                  "\r\n\r\n");
        const std::string block(1U << 20U, 'x');
        for (std::size_t i = 0; i < megabytes && peer.send(block); ++i) {
        }
    });
    Went went;
    went.sink.keep = false;
    OutboundRequest request = post("");
    request.method = "GET";
    const std::size_t before = internal::resident_bytes();
    run(at(server.port()), std::move(request), went, permit());
    EXPECT_TRUE(went.result);
    EXPECT_EQ(went.sink.total, megabytes << 20U);
    EXPECT_LE(went.sink.longest, 65536U);
    EXPECT_LT(internal::resident_bytes(), before + (8U << 20U));
    Went bounded;
    OutboundRequest small = post("");
    small.reply_bytes_max = 1000;
    run(at(server.port()), std::move(small), bounded, permit());
    EXPECT_EQ(bounded.result.error().code(), ErrorCode::upstream_failed);
    EXPECT_EQ(bounded.result.error().reason(), "reply_too_large");
}

TEST_F(ConnectorTest, TheSinkCanEndAnExchange) {
    RawServer server(always(std::string(plain_reply)));
    Went went;
    went.sink.refuse_piece = true;
    run(at(server.port()), post(), went, permit());
    EXPECT_EQ(went.result.error().code(), ErrorCode::exhausted);
    EXPECT_TRUE(run(at(server.port())).result);
    EXPECT_EQ(server.accepted(), 2);  // the broken-off connection was not kept
}

TEST_F(ConnectorTest, BoundsHeadersAndRefusesUnaskedBytes) {
    RawServer large(once("HTTP/1.1 200 OK\r\nA: " + std::string(70'000, 'a') + "\r\n\r\n"));
    EXPECT_EQ(run(at(large.port())).result.error().reason(), "reply_too_large");
    RawServer chatty(always(std::string(plain_reply) + "HTTP/1.1 200 OK\r\n\r\nsmuggled"));
    EXPECT_EQ(run(at(chatty.port())).sink.body, "hello");
    EXPECT_EQ(run(at(chatty.port())).sink.body, "hello");
    EXPECT_EQ(chatty.accepted(), 2);
}

TEST_F(ConnectorTest, KeepsOnlySoManyConnectionsForSoLong) {
    ConnectorOptions options;
    options.idle_max = 1;
    options.idle_expiry = milliseconds(500);
    connector_ = make_connector(options);
    std::atomic<int> open = 0;
    std::latch together(3);
    RawServer server([&](RawPeer& peer) {
        ++open;
        while (!peer.read_message().empty()) {
            together.arrive_and_wait();
            peer.send(plain_reply);
        }
        --open;
    });
    std::atomic<int> done = 0;
    for (int i = 0; i < 3; ++i) {
        threads_.start([&]() -> Task<void> {
            internal::KeepingSink sink;
            Wire wire;
            const policy::Permit leave = permit();
            const auto target = at(server.port());
            const Result<void> result =
                co_await connector_->exchange(leave, target, post(), sink, wire);
            EXPECT_TRUE(result);
            ++done;
        });
    }
    const auto becomes = [&open](int count) {
        for (int i = 0; i < 5000 && open != count; ++i)
            std::this_thread::sleep_for(milliseconds(1));
        return open == count;
    };
    together.wait();
    EXPECT_TRUE(becomes(1));
    EXPECT_EQ(done, 3);
    EXPECT_TRUE(becomes(0));
}

TEST_F(ConnectorTest, TalksToOurOwnServer) {
    IoThreads threads(2);
    ServerOptions options;
    options.port = 0;
    auto server = Server::listen(
        options, threads, [](HttpRequest& request, Responder& responder) -> Task<void> {
            Result<void> done = co_await responder.begin(200, Headers());
            for (std::size_t at = 0; at < request.body.size() && done; at += 1000)
                done = co_await responder.write(request.body.substr(at, 1000));
            done = co_await responder.finish();
            EXPECT_TRUE(done);
        });
    ASSERT_TRUE(server);
    const std::string body(3'000'000, 'x');
    for (int i = 0; i < 3; ++i)
        EXPECT_EQ(run(at((*server)->port()), post(body)).sink.body, body);
}

}  // namespace
}  // namespace molly::net
