#pragma once
// What the Responses API keeps between two calls: the turns so far and the answer as it was given.
// Pure.
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "domain/request.h"
#include "domain/response.h"

namespace molly::gateway {

struct Conversation {
    std::string conversation;  ///< explicit id, or empty
    std::vector<domain::Message> messages;
    std::string response;  ///< the response object, JSON text
};

/// The JSON text that is sealed and stored.
std::string sealed_text(const Conversation& conversation);
/// Errors: corrupt.
Result<Conversation> conversation_from(std::string_view text);

/// The assistant's turn that an answer is.
domain::Message turn_of(const domain::Response& response);

}  // namespace molly::gateway
