#include "net/server.h"

#include <atomic>
#include <chrono>
#include <future>
#include <stdexcept>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/coroutine.h"
#include "base/promise.h"
#include "net/internal/server_fixture.h"

namespace molly::net {
namespace {

using internal::echo;
using internal::expect_error;
using internal::RawPeer;
using internal::ServerTest;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

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

}  // namespace
}  // namespace molly::net
