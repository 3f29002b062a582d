#pragma once
// Which models a key may use, in the shape of each dialect.
#include "gateway/exchange.h"

namespace molly::gateway {

/// GET /v1/models, in Anthropic's shape for callers that send `anthropic-version`.
Task<void> list_models(Exchange& exchange);
/// GET /v1/models/{id}
Task<void> show_model(Exchange& exchange, std::string id);
/// GET /api/tags, and GET /api/ps with `running`.
Task<void> list_ollama(Exchange& exchange, bool running);
/// POST /api/show
Task<void> show_ollama(Exchange& exchange);

/// The targets that a key may reach.
std::vector<router::TargetView> visible_targets(const Exchange& exchange);

}  // namespace molly::gateway
