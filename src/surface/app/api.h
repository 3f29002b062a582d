#pragma once
// How a command asks Molly something: over the socket of the server that runs on the data folder,
// or in this process when none runs. The same HTTP either way.
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "app/places.h"
#include "app/terminal.h"
#include "net/http.h"

namespace molly::app {

struct ApiReply {
    int status = 0;
    net::Headers headers;
    std::string body;  ///< empty when the pieces went to a reader
};

/// Takes the pieces of a successful streamed answer.
using PieceReader = std::function<void(std::string_view piece)>;

class Api {
public:
    virtual ~Api() = default;
    /// One exchange as the owner. Blocks. An HTTP error is a reply; `error_of` reads it.
    virtual Result<ApiReply> call(const std::string& method, const std::string& path,
                                  std::string body, PieceReader reader) = 0;
    Result<ApiReply> call(const std::string& method, const std::string& path) {
        return call(method, path, "", {});
    }
    /// Whether a server answers, and not this process.
    virtual bool remote() const noexcept = 0;
};

struct ApiOptions {
    bool engine = false;  ///< the command needs answers from models
    std::string model;    ///< for an engine in this process
};

/// Errors: those of House::open; unavailable, when a server holds the folder but does not answer.
Result<std::unique_ptr<Api>> open_api(const Places& places, const Terminal& terminal,
                                      ApiOptions options);

/// The error in a reply with a status of 400 and more, whatever its dialect.
Error error_of(const ApiReply& reply);

/// The JSON body of a successful reply. Errors: the reply's.
Result<std::string> body_of(Result<ApiReply> reply);

}  // namespace molly::app
