#include "net/internal/stream.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>

namespace molly::net::internal {

namespace asio = boost::asio;

Stream::Stream(asio::io_context& io, std::size_t capacity)
    : Timed(io),
      io_(io),
      socket_(io),
      buffer_(std::make_unique_for_overwrite<char[]>(capacity)),
      capacity_(capacity) {}

Stream::~Stream() = default;

bool Stream::read() {
    if (reading_) return true;
    if (ended_ || closed_) return false;
    if (begin_ == end_) {
        begin_ = end_ = 0;
    } else if (begin_ > 0 && end_ == capacity_) {
        std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
        end_ -= begin_;
        begin_ = 0;
    }
    if (end_ == capacity_) return false;
    reading_ = true;
    start_read(asio::buffer(buffer_.get() + end_, capacity_ - end_));
    return true;
}

void Stream::start_read(asio::mutable_buffer into) {
    socket_.async_read_some(
        into, [self = shared_from_this()](const ErrorOfSystem& error, std::size_t count) {
            self->read_done(error, count);
        });
}

void Stream::read_done(const ErrorOfSystem& error, std::size_t count) {
    reading_ = false;
    end_ += count;
    // A deadline cancels the pending read; the connection may still have to carry an answer.
    if (error && (closed_ || error != asio::error::operation_aborted)) {
        ended_ = true;
        end_reason_ = error;
    }
    if (read_gate_.waiting()) {
        read_gate_.open();
        return;
    }
    if (!watching_) return;
    if (!ended_ && !timed_out_) {
        read();
    } else if (left_) {
        left_();
    }
}

Task<ErrorOfSystem> Stream::connect(const asio::ip::tcp::endpoint& peer, MonoTime end) {
    ErrorOfSystem error;
    socket_.open(peer.protocol(), error);
    if (!error) socket_.non_blocking(true, error);
    if (!error) socket_.set_option(asio::ip::tcp::no_delay(true), error);
    if (error) co_return error;
    deadline(end);
    socket_.async_connect(peer, [self = shared_from_this(), &error](const ErrorOfSystem& result) {
        if (!self->write_gate_.waiting()) return;
        error = result;
        self->write_gate_.open();
    });
    co_await write_gate_.wait();
    co_return timed_out_ ? ErrorOfSystem(asio::error::timed_out) : error;
}

ErrorOfSystem Stream::send_now(Buffers& buffers) {
    ErrorOfSystem error;
    while (buffers.size() > 0) {
        const std::size_t sent = socket_.write_some(buffers.parts(), error);
        if (error) break;
        buffers.consume(sent);
    }
    return error;
}

Task<ErrorOfSystem> Stream::send(Buffers& buffers, Duration idle, MonoTime end) {
    for (;;) {
        const ErrorOfSystem error = send_now(buffers);
        if (error != asio::error::would_block) co_return error;
        deadline(std::min(end, std::chrono::steady_clock::now() + idle));
        socket_.async_wait(Socket::wait_write, [self = shared_from_this()](const ErrorOfSystem&) {
            self->write_gate_.open();
        });
        co_await write_gate_.wait();
        if (timed_out_) co_return asio::error::timed_out;
        if (closed_) co_return asio::error::operation_aborted;
    }
}

void Stream::when_writable(std::function<void()> ready) {
    socket_.async_wait(Socket::wait_write, [self = shared_from_this(), call = std::move(ready)](
                                               const ErrorOfSystem&) { call(); });
}

void Stream::close() {
    if (closed_) return;
    closed_ = true;
    set_deadline(MonoTime::max());
    ErrorOfSystem ignored;
    socket_.close(ignored);
    if (!reading_) ended_ = true;
    wake_later();
}

void Stream::reset_connection() {
    ErrorOfSystem ignored;
    socket_.set_option(Socket::linger(true, 0), ignored);
    close();
}

void Stream::wake_later() {
    if (!read_gate_.waiting() || reading_) return;
    asio::post(io_, [self = shared_from_this()] { self->read_gate_.open(); });
}

void Stream::on_deadline() {
    timed_out_ = true;
    ErrorOfSystem ignored;
    socket_.cancel(ignored);
    wake_later();
}

void Stream::on_shutdown() {
    // What waits may own this stream: nothing of it is touched after the frames are gone.
    Gate reader;
    Gate writer;
    std::swap(reader, read_gate_);
    std::swap(writer, write_gate_);
    left_ = nullptr;
}

}  // namespace molly::net::internal
