#pragma once
// One caller's connection: requests in, replies out, one at a time. Lives on one IO thread.
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "net/http.h"
#include "net/internal/http_parser.h"
#include "net/internal/stream.h"
#include "net/server.h"

namespace molly::net::internal {

class Connection;

/// What all connections of one server share.
struct ServerState {
    ServerState(ServerOptions chosen, Handler answering, std::size_t threads)
        : options(std::move(chosen)), handler(std::move(answering)), rosters(threads) {}

    const ServerOptions options;
    const Handler handler;
    std::atomic<bool> stopping = false;
    std::atomic<std::uint32_t> refusing = 0;  ///< connections that only hear 503
    /// Connections by IO thread; each set is touched by its own thread only.
    std::vector<std::unordered_set<Connection*>> rosters;
    std::atomic<std::uint32_t> open = 0;
    std::mutex mutex;
    std::condition_variable closed;  ///< `open` became smaller
};

class Connection final : public Responder, public std::enable_shared_from_this<Connection> {
public:
    Connection(std::shared_ptr<ServerState> state, std::shared_ptr<Stream> stream,
               std::size_t thread, bool refused);
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;
    Connection(Connection&&) = delete;
    Connection& operator=(Connection&&) = delete;
    ~Connection() override;

    /// Serves until the connection is over. Runs on the connection's thread.
    Task<void> run();
    /// Closes when no request is under way.
    void close_if_idle();
    /// Breaks off whatever is under way.
    void abort();

    Task<Result<void>> reply(HttpReply reply) override;
    Task<Result<void>> begin(int status, Headers headers) override;
    Task<Result<void>> write(std::string_view piece) override;
    Task<Result<void>> finish() override;
    const CancellationPtr& cancellation() const noexcept override;

private:
    enum class Phase : std::uint8_t { idle, head, body, handling };
    enum class Progress : std::uint8_t { none, streaming, done };

    Task<bool> receive();
    Task<bool> more();
    void advance(const Fed& fed);
    Task<bool> serve();
    Task<void> refuse(int status, ErrorCode code, std::string_view message);
    Task<void> refuse(Fault fault);
    Task<void> part();
    void settle_keep_alive();
    void reset_for_next();
    void caller_left();
    bool gone() const noexcept { return left_ || broken_; }
    std::size_t queued() const noexcept { return out_.size() - out_begin_; }
    void flush_soon();
    void flush();
    void break_off();

    std::shared_ptr<ServerState> state_;
    std::shared_ptr<Stream> stream_;
    std::size_t thread_;
    bool refused_;
    RequestParser parser_;
    HttpRequest request_;
    Phase phase_ = Phase::idle;
    Progress progress_ = Progress::none;
    bool keep_alive_ = true;    // after the reply
    bool bodyless_ = false;     // this reply: HEAD, 204, 304
    bool chunked_ = false;      // this reply
    bool unread_body_ = false;  // answered before all of the request was read
    bool left_ = false;         // the caller has finished or closed
    bool broken_ = false;       // nothing more can be sent
    bool flush_posted_ = false;
    bool blocked_ = false;
    std::string head_;  // of a reply that is sent at once
    std::string out_;   // streamed bytes that the socket has not taken
    std::size_t out_begin_ = 0;
    mutable CancellationPtr cancellation_;
};

}  // namespace molly::net::internal
