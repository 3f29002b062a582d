#include <algorithm>
#include <chrono>
#include <random>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/coroutine.h"
#include "net/internal/server_fixture.h"
#include "net/server.h"

namespace molly::net {
namespace {

using internal::count_body;
using internal::echo;
using internal::expect_error;
using internal::memory_is_ours;
using internal::RawPeer;
using internal::resident_bytes;
using internal::ServerTest;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST_F(ServerTest, RefusesWhatHasTwoReadings) {
    listen(echo);
    const std::string start = "POST / HTTP/1.1\r\nHost: x\r\n";
    for (const std::string bad :
         {"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
          "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
          "Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde",
          "Content-Length: 4\r\nContent-Length: 4\r\n\r\nabcd", "Content-Length: 4, 4\r\n\r\nabcd",
          "Content-Length: -1\r\n\r\n", "Content-Length: +4\r\n\r\nabcd",
          "Content-Length: 0x4\r\n\r\nabcd", "Content-Length : 4\r\n\r\nabcd",
          "Content-Length: 99999999999999999999\r\n\r\n",
          "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
          "Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n", "Host: y\r\n\r\n", "X\r\n\r\n",
          "Transfer-Encoding: chunked\r\n\r\n4\r\nabcdX\r\n0\r\n\r\n",
          "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n"}) {
        SCOPED_TRACE(bad);
        expect_error(answer(start + bad), "400", "invalid_request");
    }
    expect_error(answer("POST / HTTP/1.1\r\n\r\n"), "400", "invalid_request");
    expect_error(answer("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), "400",
                 "invalid_request");
    expect_error(answer("GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n"), "400", "invalid_request");
    expect_error(answer("GET /%00 HTTP/1.1\r\nHost: x\r\n\r\n"), "400", "invalid_request");
    expect_error(answer(start + "Transfer-Encoding: gzip\r\n\r\n"), "501", "unsupported");
    expect_error(answer(start + "Transfer-Encoding: gzip, chunked\r\n\r\n"), "501", "unsupported");
    expect_error(answer("GET / HTTP/2.0\r\nHost: x\r\n\r\n"), "505", "unsupported");
    RawPeer cut = client();
    cut.send(start + "Content-Length: 10\r\n\r\nabc");
    cut.finish_sending();
    expect_error(cut.read_to_end(), "400", "invalid_request");
    expect_alive();
}

TEST_F(ServerTest, TrailersAreNoHeaders) {
    listen([](HttpRequest& request, Responder& responder) -> Task<void> {
        HttpReply reply;
        reply.body = "[" + std::string(header(request.headers, "authorization")) + "]";
        const Result<void> sent = co_await responder.reply(std::move(reply));
        EXPECT_TRUE(sent);
    });
    RawPeer peer = client();
    peer.send(
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        "0\r\nAuthorization: Bearer sneaky\r\n\r\n");
    EXPECT_THAT(peer.read_message(), EndsWith("[]"));
}

TEST_F(ServerTest, BoundsHeaders) {
    ServerOptions options;
    options.header_bytes_max = 4096;
    listen(echo, options);
    expect_error(answer("GET / HTTP/1.1\r\nHost: x\r\nA: " + std::string(5000, 'a') + "\r\n\r\n"),
                 "431", "too_large");
    expect_error(answer("GET /" + std::string(200'000, 'a')), "431", "too_large");
    expect_alive();
}

TEST_F(ServerTest, BoundsBodiesInBothFramingsAndStillGetsTheRefusalAcross) {
    ServerOptions options;
    options.body_bytes_max = 1U << 20U;
    listen(count_body, options);
    const std::string start = "POST / HTTP/1.1\r\nHost: x\r\n";
    expect_error(answer(start + "Content-Length: 1048577\r\n\r\n"), "413", "too_large");
    const std::size_t before = resident_bytes("VmHWM:");
    for (const std::string framing :
         {"Content-Length: 67108864\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n4000000\r\n"}) {
        // A client that reads nothing before it has sent everything.
        RawPeer peer = client();
        ASSERT_TRUE(peer.send(start + framing));
        const std::string block(1U << 20U, 'x');
        for (int i = 0; i < 64; ++i)
            ASSERT_TRUE(peer.send(block));
        expect_error(peer.read_to_end(), "413", "too_large");
    }
    for (const std::string size : {"100000", "40000"}) {  // many chunks that are too much together
        RawPeer peer = client();
        ASSERT_TRUE(peer.send(start + "Transfer-Encoding: chunked\r\n\r\n"));
        const std::size_t bytes = std::stoul(size, nullptr, 16);
        for (std::size_t sent = 0; sent <= 2U << 20U; sent += bytes)
            ASSERT_TRUE(peer.send(size + "\r\n" + std::string(bytes, 'x') + "\r\n"));
        expect_error(peer.read_to_end(), "413", "too_large");
    }
    if (memory_is_ours) {
        EXPECT_LT(resident_bytes("VmHWM:") - before, 8U << 20U);
    }
    RawPeer exact = client();
    exact.send(start + "Content-Length: 1048576\r\n\r\n" + std::string(1U << 20U, 'x'));
    EXPECT_THAT(exact.read_message(), EndsWith("1048576"));
}

TEST_F(ServerTest, KeepsALargeBodyInAtMostThreeTimesItsSize) {
    listen(count_body);
    const std::string block(1U << 20U, 'x');
    for (const bool chunked : {false, true}) {
        RawPeer peer = client();
        const std::size_t before = resident_bytes();
        peer.send("POST / HTTP/1.1\r\nHost: x\r\n");
        peer.send(chunked ? "Transfer-Encoding: chunked\r\n\r\n"
                          : "Content-Length: 25165824\r\n\r\n");
        std::size_t top = 0;
        for (int i = 0; i < 24; ++i) {
            if (chunked) peer.send("100000\r\n");
            peer.send(block);
            if (chunked) peer.send("\r\n");
            top = std::max(top, resident_bytes());
        }
        if (chunked) peer.send("0\r\n\r\n");
        EXPECT_THAT(peer.read_message(), EndsWith("25165824"));
        if (memory_is_ours) {
            EXPECT_LT(top - before, 3U * (24U << 20U));
        }
    }
}

TEST_F(ServerTest, TimesSlowCallersOut) {
    ServerOptions options;
    options.header_timeout = milliseconds(80);
    options.body_timeout = milliseconds(120);
    options.idle_timeout = milliseconds(300);
    listen(echo, options);
    const auto drip = [this](std::string_view first, std::string_view then) {
        RawPeer peer = client();
        peer.send(first);
        const auto begun = steady_clock::now();
        std::string heard;
        for (int i = 0; heard.empty() && i < 100; ++i) {
            peer.send(then);
            heard = peer.receive(milliseconds(20));
        }
        EXPECT_LT(steady_clock::now() - begun, milliseconds(1000));
        return heard + peer.read_to_end();
    };
    expect_error(drip("GET / HTTP/1.1\r\n", "A"), "408", "deadline_exceeded");
    expect_error(drip("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n", "b"), "408",
                 "deadline_exceeded");
    expect_error(
        drip("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n"),
        "408", "deadline_exceeded");
    const auto begun = steady_clock::now();
    EXPECT_EQ(answer(""), "");
    EXPECT_GE(steady_clock::now() - begun, milliseconds(250));
    expect_alive();
}

TEST_F(ServerTest, RefusesConnectionsBeyondTheMost) {
    ServerOptions options;
    options.connections_max = 2;
    listen(echo, options);
    {
        RawPeer first = client();
        RawPeer second = client();
        first.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        second.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        EXPECT_THAT(first.read_message(), StartsWith("HTTP/1.1 200"));
        EXPECT_THAT(second.read_message(), StartsWith("HTTP/1.1 200"));
        const std::string refused = answer("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        expect_error(refused, "503", "exhausted");
        EXPECT_THAT(refused, HasSubstr("retry-after: 1\r\n"));
    }
    std::this_thread::sleep_for(milliseconds(50));
    expect_alive();
}

TEST_F(ServerTest, SurvivesGarbageWithFlatMemory) {
    listen(echo);
    std::mt19937 random(7);
    const std::string valid =
        "POST /v1/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    const auto attack = [&](int count) {
        for (int i = 0; i < count; ++i) {
            std::string bytes = valid;
            for (int change = 0; change < 3; ++change)
                bytes[random() % bytes.size()] = static_cast<char>(random());
            if (i % 4 == 0) bytes.resize(random() % bytes.size());
            RawPeer peer = client();
            peer.send(bytes);
            peer.finish_sending();
            if (i % 2 == 0) peer.receive();
        }
    };
    attack(200);
    const std::size_t before = resident_bytes();
    attack(2000);
    if (memory_is_ours) {
        EXPECT_LT(resident_bytes(), before + (4U << 20U));
    }
    expect_alive();
}

}  // namespace
}  // namespace molly::net
