#pragma once
// Accepts HTTP/1.1 connections; each lives on one IO thread. No Asio here.
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "net/http.h"

namespace molly::net {

/// The threads that run all coroutines. Destroy servers first.
class IoThreads {
public:
    /// `count` threads; 0 means one per core, at most four.
    explicit IoThreads(std::uint32_t count);
    IoThreads(const IoThreads&) = delete;
    IoThreads& operator=(const IoThreads&) = delete;
    IoThreads(IoThreads&&) = delete;
    IoThreads& operator=(IoThreads&&) = delete;
    ~IoThreads();  // stops, then joins

    /// Runs a coroutine on one of the threads, in turn.
    void start(std::function<Task<void>()> task);
    /// Runs a coroutine and blocks the calling (non-IO) thread until it has ended.
    void run(std::function<Task<void>()> task);

    class Contexts;
    Contexts& contexts() noexcept { return *contexts_; }

private:
    std::unique_ptr<Contexts> contexts_;
};

struct ServerOptions {
    std::string address = "127.0.0.1";
    std::uint16_t port = 8080;  ///< 0: any free port
    std::size_t body_bytes_max = 32U << 20U;
    std::size_t header_bytes_max = 32U << 10U;
    std::uint32_t connections_max = 1024;
    std::chrono::milliseconds header_timeout{
        10'000};  ///< from the first byte of a request to the end of its headers
    std::chrono::milliseconds body_timeout{60'000};  ///< for the whole body
    std::chrono::milliseconds idle_timeout{75'000};  ///< between requests of one connection
    std::chrono::milliseconds write_timeout{
        60'000};  ///< a caller that reads nothing for so long has gone
    /// The JSON body of a refusal that never reaches the handler, for what is known of the path;
    /// empty: `{"error":{"code","message"}}`.
    std::function<std::string(std::string_view path, const Error& error)> refusal_body;
};

class Server {
public:
    /// Binds and listens. Errors: unavailable (port in use, naming it), invalid_request (address).
    static Result<std::unique_ptr<Server>> listen(const ServerOptions& options, IoThreads& threads,
                                                  Handler handler);
    virtual ~Server() = default;

    virtual std::uint16_t port() const noexcept = 0;
    /// Accepts no more; waits for running exchanges until `patience` is over.
    virtual void stop(std::chrono::milliseconds patience) = 0;
};

}  // namespace molly::net
