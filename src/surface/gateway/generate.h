#pragma once
// Answers the requests that a model has to answer, in every dialect.
#include <memory>

#include "gateway/conversation.h"
#include "gateway/exchange.h"
#include "gateway/stream.h"

namespace molly::gateway {

/// Decodes, runs the pipeline, encodes. The last bytes leave after the trace was committed.
Task<void> generate(Exchange& exchange, dialects::Face face, std::shared_ptr<KeepAlive> keep_alive);

/// The decision for a chat request, without any attempt.
Task<void> explain(Exchange& exchange);

/// Tokens of a Messages request, estimated.
Task<void> count_tokens(Exchange& exchange);

}  // namespace molly::gateway
