#include "net/internal/connection.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include "base/log.h"
#include "net/internal/reply_head.h"

namespace molly::net::internal {
namespace {

namespace asio = boost::asio;
using std::chrono::steady_clock;

// A writer waits once so many streamed bytes are queued.
constexpr std::size_t queued_bytes_max = 64U << 10U;
// What a large request or reply left behind is given back beyond this.
constexpr std::size_t kept_bytes_max = 256U << 10U;
// A caller that is still sending can read its refusal only if we take its bytes for a while.
constexpr std::chrono::seconds drain_max{30};
constexpr std::chrono::seconds drain_idle_max{5};
constexpr std::chrono::seconds linger_max{2};
constexpr std::chrono::milliseconds linger_stopping_max{200};

Error caller_gone() {
    return {ErrorCode::cancelled, "the caller has closed the connection"};
}

std::string error_body(const ServerOptions& options, std::string_view path, const Error& error) {
    if (options.refusal_body) return options.refusal_body(path, error);
    return fmt::format(R"({{"error":{{"code":"{}","message":"{}"}}}})", to_string(error.code()),
                       error.message());
}

std::string peer_of(Socket& socket) {
    ErrorOfSystem error;
    const auto endpoint = socket.remote_endpoint(error);
    return error ? std::string() : endpoint.address().to_string();
}

}  // namespace

Connection::Connection(std::shared_ptr<ServerState> state, std::shared_ptr<Stream> stream,
                       std::size_t thread, bool refused)
    : state_(std::move(state)),
      stream_(std::move(stream)),
      thread_(thread),
      refused_(refused),
      parser_(state_->options.header_bytes_max, state_->options.body_bytes_max) {
    request_.peer = peer_of(stream_->socket());
}

Connection::~Connection() {
    stream_->unwatch();
}

Task<void> Connection::run() {
    state_->rosters[thread_].insert(this);
    if (refused_) {
        co_await refuse(503, ErrorCode::exhausted,
                        "all connections are in use; close one or try again");
    } else {
        stream_->watch([weak = weak_from_this()] {
            if (const auto self = weak.lock()) self->caller_left();
        });
        while (co_await receive()) {
            if (!co_await serve()) break;
        }
    }
    co_await part();
    state_->rosters[thread_].erase(this);
    if (refused_) --state_->refusing;
    const std::scoped_lock lock(state_->mutex);
    --state_->open;
    state_->closed.notify_all();
}

void Connection::close_if_idle() {
    if (phase_ == Phase::idle) stream_->close();
}

void Connection::abort() {
    stream_->close();
    break_off();
}

Task<bool> Connection::receive() {
    reset_for_next();
    parser_.restart(request_);
    const auto& options = state_->options;
    stream_->deadline(steady_clock::now() + options.idle_timeout);
    for (;;) {
        if (!stream_->unread().empty()) {
            if (phase_ == Phase::idle) request_.received = steady_clock::now();
            const Fed fed = parser_.feed(stream_->unread());
            stream_->consume(fed.consumed);
            if (fed.fault != Fault::none) {
                co_await refuse(fed.fault);
                co_return false;
            }
            if (fed.done) co_return true;
            advance(fed);
        }
        if (phase_ == Phase::idle && state_->stopping.load(std::memory_order_relaxed))
            co_return false;
        if (!co_await more()) co_return false;
    }
}

void Connection::advance(const Fed& fed) {
    const auto& options = state_->options;
    if (phase_ == Phase::idle) {
        phase_ = Phase::head;
        stream_->deadline(request_.received + options.header_timeout);
    }
    if (!fed.head_done || phase_ == Phase::body) return;
    phase_ = Phase::body;
    stream_->deadline(steady_clock::now() + options.body_timeout);
    if (parser_.expects_continue() && request_.body.empty()) {
        Buffers interim("HTTP/1.1 100 Continue\r\n\r\n");
        if (stream_->send_now(interim)) broken_ = true;
    }
}

Task<bool> Connection::more() {
    if (!stream_->ended() && !stream_->read()) {
        co_await refuse(Fault::header_too_large);
        co_return false;
    }
    const std::size_t fed = stream_->unread().size();
    if (!stream_->ended()) co_await stream_->wait();
    if (stream_->timed_out()) {
        if (phase_ != Phase::idle)
            co_await refuse(408, ErrorCode::deadline_exceeded,
                            "the request took too long to arrive");
        co_return false;
    }
    if (!stream_->ended() || stream_->unread().size() > fed) co_return true;
    if (phase_ != Phase::idle && stream_->end_reason() == asio::error::eof)
        co_await refuse(400, ErrorCode::invalid_request, "the request ends in its middle");
    co_return false;
}

void Connection::reset_for_next() {
    phase_ = Phase::idle;
    progress_ = Progress::none;
    bodyless_ = chunked_ = false;
    request_.method.clear();
    request_.path.clear();
    request_.query.clear();
    request_.headers.clear();
    request_.body.clear();
    if (request_.body.capacity() > kept_bytes_max) request_.body = std::string();
    if (out_.capacity() > kept_bytes_max) out_ = std::string();
    cancellation_.reset();
}

Task<bool> Connection::serve() {
    phase_ = Phase::handling;
    stream_->deadline(MonoTime::max());
    stream_->read();  // notices a caller that leaves
    keep_alive_ = parser_.keep_alive();
    bool failed = false;
    try {
        co_await state_->handler(request_, *this);
    } catch (const std::exception& error) {
        failed = true;
        log_event(LogLevel::error, "handler_threw", {{"what", error.what()}});
    }
    if (progress_ == Progress::none) {
        if (!failed && !gone()) log_event(LogLevel::error, "handler_gave_no_reply");
        HttpReply reply;
        reply.status = 500;
        reply.headers.emplace_back("content-type", "application/json");
        const Error error(ErrorCode::internal, "the request was not answered");
        reply.body = error_body(state_->options, request_.path, error);
        const Result<void> ignored = co_await this->reply(std::move(reply));
        if (!ignored) co_return false;
    }
    if (progress_ == Progress::streaming) {
        // The end of this reply was never said: an orderly close could pass for it.
        stream_->reset_connection();
        co_return false;
    }
    co_return keep_alive_ && !gone();
}

Task<Result<void>> Connection::reply(HttpReply reply) {
    if (progress_ != Progress::none)
        co_return fail(ErrorCode::internal, "a request was answered twice");
    progress_ = Progress::done;
    bodyless_ = request_.method == "HEAD" || bodyless_status(reply.status);
    HeadFacts facts;
    settle_keep_alive();
    facts.status = reply.status;
    facts.framing = bodyless_status(reply.status) ? Framing::none : Framing::length;
    facts.body_bytes = reply.body.size();
    facts.keep_alive = keep_alive_;
    facts.http_1_0 = parser_.http_1_0();
    head_.clear();
    append_head(head_, facts, reply.headers);
    Buffers buffers(head_, bodyless_ ? std::string_view() : std::string_view(reply.body));
    ErrorOfSystem error = stream_->send_now(buffers);
    if (error == asio::error::would_block)
        error = co_await stream_->send(buffers, state_->options.write_timeout, MonoTime::max());
    if (error) break_off();
    if (gone()) co_return fail(caller_gone());
    co_return Result<void>();
}

void Connection::settle_keep_alive() {
    if (state_->stopping.load(std::memory_order_relaxed)) keep_alive_ = false;
}

Task<Result<void>> Connection::begin(int status, Headers headers) {
    if (progress_ != Progress::none)
        co_return fail(ErrorCode::internal, "a request was answered twice");
    progress_ = Progress::streaming;
    bodyless_ = request_.method == "HEAD" || bodyless_status(status);
    HeadFacts facts;
    settle_keep_alive();
    facts.status = status;
    facts.http_1_0 = parser_.http_1_0();
    chunked_ = !facts.http_1_0 && !bodyless_status(status);
    facts.framing = chunked_ ? Framing::chunked : Framing::until_close;
    if (bodyless_status(status)) facts.framing = Framing::none;
    if (facts.framing == Framing::until_close) keep_alive_ = false;
    facts.keep_alive = keep_alive_;
    append_head(out_, facts, headers);
    if (gone()) co_return fail(caller_gone());
    flush_soon();
    co_return Result<void>();
}

Task<Result<void>> Connection::write(std::string_view piece) {
    if (progress_ != Progress::streaming)
        co_return fail(ErrorCode::internal, "a piece outside of a streamed reply");
    if (gone()) co_return fail(caller_gone());
    if (piece.empty() || bodyless_) co_return Result<void>();
    if (chunked_) {
        append_chunk(out_, piece);
    } else {
        out_ += piece;
    }
    if (queued() <= queued_bytes_max) {
        flush_soon();
        co_return Result<void>();
    }
    flush();
    while (queued() > queued_bytes_max && !gone())
        co_await stream_->drained().wait();
    if (gone()) co_return fail(caller_gone());
    co_return Result<void>();
}

Task<Result<void>> Connection::finish() {
    if (progress_ != Progress::streaming)
        co_return fail(ErrorCode::internal, "the end of a reply that was not begun");
    if (gone()) co_return fail(caller_gone());
    if (chunked_ && !bodyless_) out_ += "0\r\n\r\n";
    flush();
    while (queued() > 0 && !gone())
        co_await stream_->drained().wait();
    if (gone()) co_return fail(caller_gone());
    progress_ = Progress::done;
    co_return Result<void>();
}

const CancellationPtr& Connection::cancellation() const noexcept {
    if (!cancellation_) {
        cancellation_ = std::make_shared<Cancellation>();
        if (gone()) cancellation_->cancel();
    }
    return cancellation_;
}

void Connection::flush_soon() {
    // Pieces that are written in one turn of the loop leave together.
    if (flush_posted_ || blocked_) return;
    flush_posted_ = true;
    asio::post(stream_->io(), [self = shared_from_this()] {
        self->flush_posted_ = false;
        self->flush();
    });
}

void Connection::flush() {
    if (blocked_ || broken_ || queued() == 0) return;
    Buffers buffers(std::string_view(out_).substr(out_begin_));
    const ErrorOfSystem error = stream_->send_now(buffers);
    out_begin_ = out_.size() - buffers.size();
    if (error == asio::error::would_block) {
        blocked_ = true;
        stream_->deadline(steady_clock::now() + state_->options.write_timeout);
        stream_->when_writable([self = shared_from_this()] {
            self->blocked_ = false;
            if (self->stream_->timed_out() || self->stream_->closed()) {
                self->break_off();
            } else {
                self->flush();
            }
        });
        if (out_begin_ < queued_bytes_max) return;
        out_.erase(0, out_begin_);
        out_begin_ = 0;
        return;
    }
    if (error) {
        break_off();
        return;
    }
    out_.clear();
    out_begin_ = 0;
    stream_->drained().open();
}

void Connection::break_off() {
    broken_ = true;
    if (cancellation_) cancellation_->cancel();
    stream_->drained().open();
}

void Connection::caller_left() {
    left_ = true;
    if (cancellation_) cancellation_->cancel();
    stream_->drained().open();
}

Task<void> Connection::refuse(int status, ErrorCode code, std::string_view message) {
    keep_alive_ = false;
    unread_body_ = true;
    HttpReply answer;
    answer.status = status;
    answer.headers.emplace_back("content-type", "application/json");
    if (status == 503) answer.headers.emplace_back("retry-after", "1");
    answer.body = error_body(state_->options, request_.path, Error(code, std::string(message)));
    stream_->deadline(MonoTime::max());
    const Result<void> sent = co_await reply(std::move(answer));
    if (!sent) broken_ = true;
}

Task<void> Connection::refuse(Fault fault) {
    const auto& options = state_->options;
    switch (fault) {
        case Fault::header_too_large:
            co_await refuse(
                431, ErrorCode::too_large,
                fmt::format("the headers are larger than {} bytes", options.header_bytes_max));
            break;
        case Fault::body_too_large:
            co_await refuse(
                413, ErrorCode::too_large,
                fmt::format("the body is larger than {} bytes", options.body_bytes_max));
            break;
        case Fault::unsupported_version:
            co_await refuse(505, ErrorCode::unsupported, "speak HTTP/1.1");
            break;
        case Fault::unsupported_coding:
            co_await refuse(501, ErrorCode::unsupported,
                            "the only transfer coding here is chunked");
            break;
        case Fault::malformed:
        case Fault::none:
            co_await refuse(400, ErrorCode::invalid_request, "this is no valid HTTP request");
            break;
    }
}

Task<void> Connection::part() {
    stream_->unwatch();
    if (stream_->ended() || stream_->closed() || broken_) {
        stream_->close();
        co_return;
    }
    ErrorOfSystem ignored;
    stream_->socket().shutdown(Socket::shutdown_send, ignored);
    Duration patience = unread_body_ ? Duration(drain_max) : Duration(linger_max);
    if (state_->stopping.load(std::memory_order_relaxed)) patience = linger_stopping_max;
    const MonoTime end = steady_clock::now() + patience;
    while (!stream_->ended() && steady_clock::now() < end) {
        stream_->consume(stream_->unread().size());
        stream_->deadline(std::min(end, steady_clock::now() + drain_idle_max));
        if (!stream_->read()) break;
        co_await stream_->wait();
        if (stream_->timed_out()) break;
    }
    stream_->close();
}

}  // namespace molly::net::internal
