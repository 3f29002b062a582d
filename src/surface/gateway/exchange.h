#pragma once
// One request on its way through the face: who asks, in which dialect, and how to answer.
#include <string>
#include <string_view>

#include "base/coroutine.h"
#include "base/language.h"
#include "gateway/gateway.h"
#include "gateway/routes.h"

namespace molly::gateway {

class Exchange {
public:
    Exchange(const Parts& its_parts, const Options& its_options, net::HttpRequest& its_request,
             net::Responder& its_responder);

    const Parts& parts;
    const Options& options;
    net::HttpRequest& request;
    net::Responder& responder;
    Shape shape;
    Language language;
    net::Headers extra;  ///< sent with every reply
    members::Key key;    ///< after authentication
    bool authenticated = false;
    std::string request_id;  ///< once a model is asked; errors of some dialects carry it

    /// The caller's headers and `more` as one list.
    net::Headers headers(std::string_view content_type, const net::Headers& more) const;
    Task<void> send(int status, std::string_view content_type, std::string body);
    Task<void> send(int status, std::string_view content_type, std::string body, net::Headers more);
    Task<void> send_json(std::string body);
    /// The error as this caller should read it: the owner's own command line in its language, in
    /// every dialect.
    Error told(const Error& error) const;
    /// An error in the dialect of the path.
    Task<void> send_error(const Error& error);
    Task<void> send_error(const Error& error, net::Headers more);
};

/// Status and body of an error in one dialect; Molly's own shape speaks `language`.
dialects::ErrorReply shape_error(Shape shape, Language language, const Error& error,
                                 std::string_view request_id);

/// Whose things are kept under this key: its member's, else its own.
std::string owner_of(const members::Key& key);

/// `text` as a JSON string.
std::string json_string(std::string_view text);

}  // namespace molly::gateway
