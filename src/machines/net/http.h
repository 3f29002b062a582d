#pragma once
// HTTP messages as values, and what a handler may do with one exchange. No Asio here.
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/result.h"
#include "base/task.h"

namespace molly::net {

/// Header names are lower-case.
using Headers = std::vector<std::pair<std::string, std::string>>;

/// The first header of that (lower-case) name, or empty.
std::string_view header(const Headers& headers, std::string_view name) noexcept;

struct HttpRequest {
    std::string method;
    std::string path;   ///< percent-decoded, without the query
    std::string query;  ///< raw, without `?`
    Headers headers;
    std::string body;
    std::string peer;  ///< address of the caller
    MonoTime received;
};

struct HttpReply {
    int status = 200;
    Headers headers;  ///< content-length and connection are added by the server
    std::string body;
};

/// The answering side of one exchange. Used by one coroutine.
class Responder {
public:
    virtual ~Responder() = default;
    /// The whole reply at once. Errors: cancelled, when the caller has gone.
    virtual Task<Result<void>> reply(HttpReply reply) = 0;
    /// Begins a streamed reply (chunked). Errors: cancelled.
    virtual Task<Result<void>> begin(int status, Headers headers) = 0;
    /// Sends a piece; suspends while the caller is slow. Errors: cancelled.
    virtual Task<Result<void>> write(std::string_view piece) = 0;
    /// Ends a streamed reply properly. Errors: cancelled.
    virtual Task<Result<void>> finish() = 0;
    /// Cancelled when the caller disconnects.
    virtual const CancellationPtr& cancellation() const noexcept = 0;
};

/// Answers exactly once through the responder. Request and responder live until the coroutine ends.
using Handler = std::function<Task<void>(HttpRequest& request, Responder& responder)>;

}  // namespace molly::net
