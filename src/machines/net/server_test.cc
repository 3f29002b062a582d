#include "net/server.h"

#include <atomic>
#include <chrono>
#include <future>
#include <random>
#include <stdexcept>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/coroutine.h"
#include "base/json.h"
#include "base/promise.h"
#include "net/internal/raw_peer.h"

namespace molly::net {
namespace {

using internal::RawPeer;
using internal::resident_bytes;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool memory_is_ours = false;  // a sanitizer keeps freed memory
#else
constexpr bool memory_is_ours = true;
#endif

/// Answers `METHOD path?query body`.
Task<void> echo(HttpRequest& request, Responder& responder) {
    HttpReply reply;
    reply.headers.emplace_back("content-type", "text/plain");
    reply.body = request.method + " " + request.path + "?" + request.query + " " + request.body;
    const Result<void> sent = co_await responder.reply(std::move(reply));
    EXPECT_TRUE(sent || sent.error().code() == ErrorCode::cancelled);
}

Task<void> count_body(HttpRequest& request, Responder& responder) {
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
        EXPECT_THAT(peer.read_message(), StartsWith("HTTP/1.1 200"));
    }

    IoThreads threads_{2};
    std::unique_ptr<Server> server_;
};

/// The body is JSON in the neutral shape, with that code.
void expect_error(const std::string& reply, std::string_view status, std::string_view code) {
    EXPECT_THAT(reply, StartsWith("HTTP/1.1 " + std::string(status)));
    const auto body = reply.find("\r\n\r\n");
    ASSERT_NE(body, std::string::npos) << reply;
    const auto parsed = parse_json(std::string_view(reply).substr(body + 4));
    ASSERT_TRUE(parsed) << reply;
    EXPECT_EQ(parsed->at("error").at("code").as_string(), code);
    EXPECT_FALSE(parsed->at("error").at("message").as_string().empty());
    EXPECT_THAT(reply, HasSubstr("connection: close\r\n"));
}

TEST_F(ServerTest, AnswersManyRequestsOnOneConnection) {
    listen(echo);
    RawPeer peer = client();
    for (int i = 0; i < 3; ++i) {
        peer.send("POST /a%20b?q=%20 HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi");
        const std::string reply = peer.read_message();
        EXPECT_THAT(reply, StartsWith("HTTP/1.1 200 OK\r\n"));
        EXPECT_THAT(reply, EndsWith("\r\n\r\nPOST /a b?q=%20 hi"));
        EXPECT_THAT(reply, AllOf(HasSubstr("content-length: 18\r\n"), HasSubstr("date: ")));
    }
}

TEST_F(ServerTest, AnswersPipelinedRequestsInOrder) {
    listen([](HttpRequest& request, Responder& responder) -> Task<void> {
        co_await system_clock().sleep_until(system_clock().now() + milliseconds(10));
        co_await echo(request, responder);
    });
    RawPeer peer = client();
    std::string all;
    for (int i = 0; i < 20; ++i)
        all += "GET /" + std::to_string(i) + " HTTP/1.1\r\nHost: x\r\n\r\n";
    peer.send(all.substr(0, all.size() - 7));
    std::string replies = peer.read_until("GET /0?");
    peer.send(all.substr(all.size() - 7));
    replies += peer.read_until("GET /19? ");
    std::size_t at = 0;
    for (int i = 0; i < 20; ++i) {
        at = replies.find("GET /" + std::to_string(i) + "? ", at);
        ASSERT_NE(at, std::string::npos) << i;
    }
}

TEST_F(ServerTest, ReadsOneByteAtATimeAndBothFramings) {
    listen(echo);
    for (const std::string body :
         {"Content-Length: 5\r\n\r\nhello",
          "Transfer-Encoding: chunked\r\n\r\n2;a=b\r\nhe\r\n3\r\nllo\r\n0\r\nX: y\r\n\r\n"}) {
        RawPeer peer = client();
        const int on = 1;
        ::setsockopt(peer.descriptor(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        for (const char letter : "\r\nPOST / HTTP/1.1\r\nHost: x\r\n" + body)
            peer.send(std::string_view(&letter, 1));
        EXPECT_THAT(peer.read_message(), EndsWith("POST /? hello"));
    }
}

TEST_F(ServerTest, PassesHeadAndOptionsOnAndSpeaksHttp10) {
    listen(echo);
    RawPeer peer = client();
    peer.send("HEAD /h HTTP/1.1\r\nHost: x\r\n\r\n");
    const std::string head = peer.read_until("\r\n\r\n");
    EXPECT_THAT(head, AllOf(HasSubstr("content-length: 9\r\n"), EndsWith("\r\n\r\n")));
    peer.send("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_THAT(peer.read_message(), EndsWith("OPTIONS *? "));
    EXPECT_THAT(answer("GET / HTTP/1.0\r\n\r\n"),
                AllOf(HasSubstr("connection: close"), EndsWith("GET /? ")));
    EXPECT_THAT(answer("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
                AllOf(HasSubstr("connection: close"), EndsWith("GET /? ")));
}

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

TEST_F(ServerTest, SaysContinueWhenAsked) {
    listen(echo);
    RawPeer peer = client();
    peer.send("POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    EXPECT_EQ(peer.receive(), "HTTP/1.1 100 Continue\r\n\r\n");
    peer.send("ok");
    EXPECT_THAT(peer.read_message(), EndsWith("POST /? ok"));
    expect_error(answer("POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
                        "Content-Length: 99999999999\r\n\r\n"),
                 "413", "too_large");
}

TEST_F(ServerTest, NoticesADisconnectWhileTheHandlerRuns) {
    std::promise<steady_clock::time_point> cancelled;
    std::atomic<bool> answered = false;
    listen([&](HttpRequest& request, Responder& responder) -> Task<void> {
        if (request.path == "/alive") {
            co_await echo(request, responder);
            co_return;
        }
        const auto left = std::make_shared<Promise<int>>();
        const CancelSubscription subscription(responder.cancellation(), [left, &cancelled] {
            cancelled.set_value(steady_clock::now());
            left->set(1);
        });
        co_await left->wait();
        const Result<void> sent = co_await responder.begin(200, Headers());
        answered = sent.has_value();
    });
    RawPeer peer = client();
    // Pipelined bytes lie before the end.
    peer.send("GET /slow HTTP/1.1\r\nHost: x\r\n\r\nGET /next HTTP/1.1\r\n");
    std::this_thread::sleep_for(milliseconds(30));
    const auto closed = steady_clock::now();
    peer.close();
    auto future = cancelled.get_future();
    ASSERT_EQ(future.wait_for(std::chrono::seconds(2)), std::future_status::ready);
    EXPECT_LT(future.get() - closed, milliseconds(100));
    expect_alive();
    EXPECT_FALSE(answered);
}

TEST_F(ServerTest, StreamsInChunks) {
    listen([](HttpRequest& /*request*/, Responder& responder) -> Task<void> {
        Headers headers;
        headers.emplace_back("content-type", "text/event-stream");
        headers.emplace_back("content-length", "3");          // not the handler's to say
        headers.emplace_back("x-split", "a\r\nInjected: 1");  // would break the line
        Result<void> done = co_await responder.begin(200, std::move(headers));
        for (int i = 0; i < 3 && done; ++i) {
            done = co_await responder.write("data: " + std::to_string(i) + "\n\n");
            if (i == 1) co_await system_clock().sleep_until(system_clock().now() + milliseconds(5));
        }
        done = co_await responder.finish();
        EXPECT_TRUE(done);
    });
    RawPeer peer = client();
    for (int i = 0; i < 2; ++i) {
        peer.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        const std::string reply = peer.read_until("0\r\n\r\n");
        EXPECT_THAT(reply, HasSubstr("transfer-encoding: chunked\r\n"));
        EXPECT_THAT(reply, Not(HasSubstr("content-length")));
        EXPECT_THAT(reply, Not(HasSubstr("Injected")));
        EXPECT_THAT(
            reply,
            EndsWith("9\r\ndata: 0\n\n\r\n9\r\ndata: 1\n\n\r\n9\r\ndata: 2\n\n\r\n0\r\n\r\n"));
    }
    EXPECT_THAT(answer("GET / HTTP/1.0\r\n\r\n"),
                AllOf(Not(HasSubstr("chunked")), EndsWith("data: 0\n\ndata: 1\n\ndata: 2\n\n")));
    EXPECT_THAT(answer("HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
                EndsWith("\r\n\r\n"));
}

TEST_F(ServerTest, ASlowReaderHoldsTheWriterAndADeadOneEndsIt) {
    ServerOptions options;
    options.write_timeout = milliseconds(200);
    std::atomic<std::size_t> written = 0;
    std::promise<ErrorCode> ended;
    listen(
        [&](HttpRequest& /*request*/, Responder& responder) -> Task<void> {
            Result<void> done = co_await responder.begin(200, Headers());
            const std::string piece(10'000, 'x');
            while (done) {
                done = co_await responder.write(piece);
                written += piece.size();
            }
            ended.set_value(done.error().code());
        },
        options);
    RawPeer peer = client();
    peer.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    std::size_t read = 0;
    while (read < 20'000'000) {
        const std::string more = peer.receive();
        ASSERT_FALSE(more.empty());
        read += more.size();
    }
    EXPECT_LT(written, read + (8U << 20U));  // no further ahead than the kernel's buffers
    auto future = ended.get_future();
    ASSERT_EQ(future.wait_for(std::chrono::seconds(3)), std::future_status::ready);
    EXPECT_EQ(future.get(), ErrorCode::cancelled);
}

TEST_F(ServerTest, AnswersForHandlersThatDoNot) {
    listen([](HttpRequest& request, Responder& responder) -> Task<void> {
        if (request.path == "/throws") throw std::runtime_error("boom");
        if (request.path == "/stream") {
            const Result<void> begun = co_await responder.begin(200, Headers());
            EXPECT_TRUE(begun);
            const Result<void> sent = co_await responder.write("half");
            EXPECT_TRUE(sent);
            co_await system_clock().sleep_until(system_clock().now() + milliseconds(5));
        }
        if (request.path == "/twice") {
            HttpReply reply;
            const Result<void> first = co_await responder.reply(reply);
            EXPECT_TRUE(first);
            const Result<void> second = co_await responder.reply(reply);
            EXPECT_EQ(second.error().code(), ErrorCode::internal);
        }
    });
    RawPeer peer = client();
    for (const std::string path : {"/forgets", "/throws"}) {
        peer.send("GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n");
        const std::string reply = peer.read_message();
        EXPECT_THAT(reply, AllOf(StartsWith("HTTP/1.1 500"), HasSubstr("\"code\":\"internal\"")));
    }
    peer.send("GET /twice HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_THAT(peer.read_message(), StartsWith("HTTP/1.1 200"));
    EXPECT_THAT(answer("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n"), Not(HasSubstr("0\r\n\r\n")));
}

TEST_F(ServerTest, StopsWhenTheRunningExchangesAreOver) {
    std::promise<void> entered;
    listen([&](HttpRequest& request, Responder& responder) -> Task<void> {
        entered.set_value();
        co_await system_clock().sleep_until(system_clock().now() + milliseconds(100));
        co_await echo(request, responder);
    });
    RawPeer idle = client();
    RawPeer busy = client();
    busy.send("GET /last HTTP/1.1\r\nHost: x\r\n\r\n");
    entered.get_future().wait();
    const auto begun = steady_clock::now();
    server_->stop(std::chrono::seconds(5));
    EXPECT_LT(steady_clock::now() - begun, std::chrono::seconds(2));
    EXPECT_THAT(busy.read_to_end(), AllOf(HasSubstr("connection: close"), EndsWith("GET /last? ")));
    EXPECT_EQ(idle.receive(), "");
}

TEST_F(ServerTest, StopBreaksOffWhatTakesTooLong) {
    std::promise<void> entered;
    std::atomic<bool> cancelled = false;
    listen([&](HttpRequest& /*request*/, Responder& responder) -> Task<void> {
        const auto left = std::make_shared<Promise<int>>();
        const CancelSubscription subscription(responder.cancellation(), [left] { left->set(1); });
        entered.set_value();
        co_await left->wait();
        cancelled = true;
    });
    RawPeer peer = client();
    peer.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    entered.get_future().wait();
    server_->stop(milliseconds(20));
    EXPECT_TRUE(cancelled);
    EXPECT_EQ(peer.receive(), "");
}

TEST_F(ServerTest, SaysWhyItCannotListen) {
    listen(echo);
    ServerOptions options;
    options.port = server_->port();
    const auto taken = Server::listen(options, threads_, echo);
    ASSERT_FALSE(taken);
    EXPECT_EQ(taken.error().code(), ErrorCode::unavailable);
    EXPECT_THAT(taken.error().message(), HasSubstr(std::to_string(options.port)));
    options.address = "localhost";
    const auto nonsense = Server::listen(options, threads_, echo);
    ASSERT_FALSE(nonsense);
    EXPECT_EQ(nonsense.error().code(), ErrorCode::invalid_request);
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
