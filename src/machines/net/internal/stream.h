#pragma once
// Bytes between one socket and one coroutine, both on one IO thread. One read can stay pending in
// the background: it is what notices that the peer has left while nobody waits for its bytes.
#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/system/error_code.hpp>

#include "base/coroutine.h"
#include "net/internal/deadlines.h"
#include "net/internal/gate.h"

namespace molly::net::internal {

using Socket =
    boost::asio::basic_stream_socket<boost::asio::ip::tcp, boost::asio::io_context::executor_type>;
using ErrorOfSystem = boost::system::error_code;

/// What one write call hands over; sent with as few system calls as the socket allows.
class Buffers {
public:
    explicit Buffers(std::string_view first, std::string_view second = {},
                     std::string_view third = {})
        : parts_{{boost::asio::buffer(first), boost::asio::buffer(second),
                  boost::asio::buffer(third)}} {}
    const std::array<boost::asio::const_buffer, 3>& parts() const noexcept { return parts_; }
    std::size_t size() const noexcept { return boost::asio::buffer_size(parts_); }
    void consume(std::size_t count) noexcept {
        for (auto& part : parts_) {
            const std::size_t taken = std::min(count, part.size());
            part += taken;
            count -= taken;
        }
    }

private:
    std::array<boost::asio::const_buffer, 3> parts_;
};

class Stream : public std::enable_shared_from_this<Stream>, protected Timed {
public:
    Stream(boost::asio::io_context& io, std::size_t capacity);
    ~Stream() override;

    Socket& socket() noexcept { return socket_; }
    boost::asio::io_context& io() noexcept { return io_; }

    /// Bytes received and not yet consumed. Valid until the next `read`.
    std::string_view unread() const noexcept { return {buffer_.get() + begin_, end_ - begin_}; }
    void consume(std::size_t count) noexcept { begin_ += count; }
    /// Starts a read unless one is pending. False when the buffer is full or nothing can come.
    bool read();
    /// Suspends until the pending read brought bytes, or the end, or the deadline.
    Task<void> wait() { return read_gate_.wait(); }
    /// The peer has finished sending, or the connection is broken: nothing more will come.
    bool ended() const noexcept { return ended_; }
    /// Why; `eof` for an orderly end.
    const ErrorOfSystem& end_reason() const noexcept { return end_reason_; }

    /// Reads on while nobody waits, as far as the buffer has room, and calls `left` at the end or
    /// at the deadline.
    void watch(std::function<void()> left) {
        left_ = std::move(left);
        watching_ = true;
    }
    void unwatch() { watching_ = false; }

    /// The deadline interrupts whatever waits and sets `timed_out`.
    void deadline(MonoTime when) {
        timed_out_ = false;
        set_deadline(when);
    }
    bool timed_out() const noexcept { return timed_out_; }

    /// Sends what the socket takes at once and consumes it from `buffers`.
    virtual ErrorOfSystem send_now(Buffers& buffers);
    /// Suspends until everything is handed to the socket, consuming it; `idle` is the longest time
    /// without progress, `end` the last moment.
    virtual Task<ErrorOfSystem> send(Buffers& buffers, Duration idle, MonoTime end);
    /// Connects a socket that was never used. Errors: those of the system; timed_out at `end`.
    Task<ErrorOfSystem> connect(const boost::asio::ip::tcp::endpoint& peer, MonoTime end);
    /// Where a writer that keeps its own queue waits for it to drain.
    Gate& drained() noexcept { return write_gate_; }
    /// Calls `ready` once when the socket takes bytes again, failed, or the deadline passed.
    void when_writable(std::function<void()> ready);

    /// Breaks off at once; whoever waits resumes later, not inside this call. This thread only.
    void close();
    /// The same, with a reset instead of an orderly end.
    void reset_connection();
    bool closed() const noexcept { return closed_; }

    /// For waits that no socket operation ends: wakes the waiter of `wait`.
    void wake_later();

protected:
    virtual void start_read(boost::asio::mutable_buffer into);
    void read_done(const ErrorOfSystem& error, std::size_t count);

    boost::asio::io_context& io_;
    Socket socket_;
    Gate read_gate_;
    Gate write_gate_;
    bool timed_out_ = false;
    bool closed_ = false;

private:
    void on_deadline() override;
    void on_shutdown() override;

    std::unique_ptr<char[]> buffer_;  // shape: [capacity]
    std::size_t capacity_;
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
    bool reading_ = false;
    bool watching_ = false;
    bool ended_ = false;
    ErrorOfSystem end_reason_;
    std::function<void()> left_;
};

}  // namespace molly::net::internal
