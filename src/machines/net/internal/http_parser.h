#pragma once
// Incremental HTTP/1.x parsing behind plain types; the only user of Beast. One thread each.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "net/http.h"

namespace molly::net::internal {

/// Why a message is refused.
enum class Fault : std::uint8_t {
    none,
    malformed,
    header_too_large,
    body_too_large,
    unsupported_version,
    unsupported_coding,
};

struct Fed {
    std::size_t consumed = 0;  ///< bytes
    Fault fault = Fault::none;
    bool head_done = false;  ///< start line and headers are complete
    bool done = false;       ///< the message is complete
};

/// Parses one request after another into a value.
class RequestParser {
public:
    RequestParser(std::size_t header_bytes_max, std::size_t body_bytes_max);
    RequestParser(const RequestParser&) = delete;
    RequestParser& operator=(const RequestParser&) = delete;
    RequestParser(RequestParser&&) = delete;
    RequestParser& operator=(RequestParser&&) = delete;
    ~RequestParser();

    /// Begins the next message, which goes to `into`.
    void restart(HttpRequest& into);
    Fed feed(std::string_view bytes);
    /// Whether the connection may carry another request after this one.
    bool keep_alive() const noexcept;
    bool expects_continue() const noexcept;
    bool http_1_0() const noexcept;

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

/// Parses one reply. What it finds of the body stays in the fed bytes: `pieces` points into them.
class ReplyParser {
public:
    /// `bodyless`: the reply to a HEAD request.
    ReplyParser(std::size_t header_bytes_max, std::uint64_t body_bytes_max, bool bodyless);
    ReplyParser(const ReplyParser&) = delete;
    ReplyParser& operator=(const ReplyParser&) = delete;
    ReplyParser(ReplyParser&&) = delete;
    ReplyParser& operator=(ReplyParser&&) = delete;
    ~ReplyParser();

    Fed feed(std::string_view bytes);
    /// The peer closed in order. True when that is how this message ends.
    bool finish_at_eof();
    int status() const noexcept;
    const Headers& headers() const noexcept;
    const std::vector<std::string_view>& pieces() const noexcept;
    bool keep_alive() const noexcept;

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace molly::net::internal
