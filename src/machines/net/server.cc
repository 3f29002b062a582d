#include "net/server.h"

#include <chrono>
#include <utility>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include "base/coroutine.h"
#include "base/log.h"
#include "net/internal/connection.h"
#include "net/internal/contexts.h"
#include "net/internal/stream.h"

namespace molly::net {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using internal::Connection;
using internal::ErrorOfSystem;
using internal::ServerState;
using internal::Socket;
using internal::Stream;
using Acceptor = asio::basic_socket_acceptor<tcp, asio::io_context::executor_type>;

// Beyond these even a refusal is too much: the connection is dropped.
constexpr std::uint32_t refusing_max = 64;
// After a failure to accept (no file descriptors left) the next try waits so long.
constexpr std::chrono::milliseconds accept_pause{50};
// How long stop waits for handlers whose connections it has broken off.
constexpr std::chrono::seconds abort_patience{10};

/// Accepts on the first IO thread and hands each connection to the next one in turn.
class Door : public std::enable_shared_from_this<Door> {
public:
    Door(IoThreads::Contexts& contexts, std::shared_ptr<ServerState> state)
        : contexts_(contexts),
          state_(std::move(state)),
          acceptor_(contexts.at(0)),
          pause_(contexts.at(0)) {}

    ErrorOfSystem open(const tcp::endpoint& endpoint) {
        ErrorOfSystem error;
        acceptor_.open(endpoint.protocol(), error);
        if (!error) acceptor_.set_option(Acceptor::reuse_address(true), error);
        if (!error) acceptor_.bind(endpoint, error);
        if (!error) acceptor_.listen(Acceptor::max_listen_connections, error);
        if (!error) port_ = acceptor_.local_endpoint(error).port();
        return error;
    }
    std::uint16_t port() const noexcept { return port_; }

    /// The first IO thread only.
    void accept() {
        const std::size_t thread = contexts_.next();
        acceptor_.async_accept(
            contexts_.at(thread),
            [self = shared_from_this(), thread](const ErrorOfSystem& error, Socket socket) {
                self->accepted(error, std::move(socket), thread);
            });
    }
    void close() {
        ErrorOfSystem ignored;
        acceptor_.close(ignored);
        pause_.cancel();
    }

private:
    void accepted(const ErrorOfSystem& error, Socket socket, std::size_t thread) {
        if (!acceptor_.is_open()) return;
        if (error) {
            log_event(LogLevel::warning, "accept_failed", {{"what", error.message()}});
            pause_.expires_after(accept_pause);
            pause_.async_wait([self = shared_from_this()](const ErrorOfSystem& stopped) {
                if (!stopped) self->accept();
            });
            return;
        }
        admit(std::move(socket), thread);
        accept();
    }

    void admit(Socket socket, std::size_t thread) {
        const bool refused = state_->open - state_->refusing >= state_->options.connections_max;
        if (refused && state_->refusing >= refusing_max) return;
        if (refused) ++state_->refusing;
        ++state_->open;
        asio::post(contexts_.at(thread), [state = state_, &io = contexts_.at(thread), thread,
                                          refused, kept = std::move(socket)]() mutable {
            serve(std::move(state), io, std::move(kept), thread, refused);
        });
    }

    static void serve(std::shared_ptr<ServerState> state, asio::io_context& io, Socket socket,
                      std::size_t thread, bool refused) {
        auto stream = std::make_shared<Stream>(
            io, std::max<std::size_t>(65536, state->options.header_bytes_max + 4096));
        ErrorOfSystem ignored;
        socket.non_blocking(true, ignored);
        socket.set_option(tcp::no_delay(true), ignored);
        stream->socket() = std::move(socket);
        auto connection =
            std::make_shared<Connection>(std::move(state), std::move(stream), thread, refused);
        spawn(io.get_executor(), [connection] { return connection->run(); });
    }

    IoThreads::Contexts& contexts_;
    std::shared_ptr<ServerState> state_;
    Acceptor acceptor_;
    asio::steady_timer pause_;
    std::uint16_t port_ = 0;
};

class SocketServer final : public Server {
public:
    SocketServer(IoThreads::Contexts& contexts, std::shared_ptr<ServerState> state,
                 std::shared_ptr<Door> door)
        : contexts_(contexts), state_(std::move(state)), door_(std::move(door)) {}
    SocketServer(const SocketServer&) = delete;
    SocketServer& operator=(const SocketServer&) = delete;
    SocketServer(SocketServer&&) = delete;
    SocketServer& operator=(SocketServer&&) = delete;
    ~SocketServer() override { stop(std::chrono::milliseconds(0)); }

    std::uint16_t port() const noexcept override { return door_->port(); }

    void stop(std::chrono::milliseconds patience) override {
        if (stopped_) return;
        stopped_ = true;
        state_->stopping = true;
        asio::post(contexts_.at(0), [door = door_] { door->close(); });
        for_each_connection([](Connection& connection) { connection.close_if_idle(); });
        if (wait(patience)) return;
        for_each_connection([](Connection& connection) { connection.abort(); });
        if (!wait(abort_patience))
            log_event(LogLevel::error, "connections_left_open", {{"count", state_->open.load()}});
    }

private:
    template <class Call>
    void for_each_connection(Call call) {
        for (std::size_t thread = 0; thread < contexts_.size(); ++thread) {
            asio::post(contexts_.at(thread), [state = state_, thread, call] {
                for (Connection* connection : state->rosters[thread])
                    call(*connection);
            });
        }
    }

    bool wait(std::chrono::milliseconds patience) {
        std::unique_lock lock(state_->mutex);
        return state_->closed.wait_for(lock, patience, [this] { return state_->open == 0; });
    }

    IoThreads::Contexts& contexts_;
    std::shared_ptr<ServerState> state_;
    std::shared_ptr<Door> door_;
    bool stopped_ = false;
};

}  // namespace

Result<std::unique_ptr<Server>> Server::listen(const ServerOptions& options, IoThreads& threads,
                                               Handler handler) {
    ErrorOfSystem error;
    const auto address = asio::ip::make_address(options.address, error);
    if (error) {
        return fail(Error(ErrorCode::invalid_request,
                          fmt::format("'{}' is no IP address; use 127.0.0.1 for this device only",
                                      options.address))
                        .italian(fmt::format(
                            "'{}' non è un indirizzo IP; 127.0.0.1 vale per il solo dispositivo",
                            options.address)));
    }
    auto state =
        std::make_shared<ServerState>(options, std::move(handler), threads.contexts().size());
    auto door = std::make_shared<Door>(threads.contexts(), state);
    error = door->open(tcp::endpoint(address, options.port));
    if (error) {
        return fail(
            Error(ErrorCode::unavailable,
                  fmt::format("cannot listen on {} port {}: {}; stop what uses it or choose "
                              "another port",
                              options.address, options.port, error.message()))
                .italian(fmt::format("impossibile ascoltare su {} porta {}: {}; fermare chi la "
                                     "usa o scegliere un'altra porta",
                                     options.address, options.port, error.message())));
    }
    asio::post(threads.contexts().at(0), [door] { door->accept(); });
    return std::unique_ptr<Server>(
        std::make_unique<SocketServer>(threads.contexts(), std::move(state), std::move(door)));
}

}  // namespace molly::net
