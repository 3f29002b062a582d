#pragma once
// Molly's own interface: health, targets, traces, receipts, keys.
#include "gateway/exchange.h"

namespace molly::gateway {

/// GET /molly/v1/health: without a key it only says that the server is alive.
Task<void> health(Exchange& exchange);
Task<void> whoami(Exchange& exchange);
Task<void> list_targets(Exchange& exchange);
/// GET /molly/v1/traces?limit=&member=&target=&outcome=&before=
Task<void> list_traces(Exchange& exchange);
Task<void> show_trace(Exchange& exchange, std::string id);
Task<void> show_receipt(Exchange& exchange, std::string id);
/// POST /molly/v1/policy/reload, for admins: label and policy rules as the file says them now.
Task<void> reload_rules(Exchange& exchange);
/// POST /molly/v1/audit/rotate-key, for admins: another key signs the receipts from now on.
Task<void> rotate_key(Exchange& exchange);
Task<void> list_keys(Exchange& exchange);
/// POST /molly/v1/keys with a scope; the answer shows the key once.
Task<void> create_key(Exchange& exchange);
Task<void> revoke_key(Exchange& exchange, std::string id);
/// POST /molly/v1/declassify with {"conversation", "class", "reason"}; the answer is the trace of
/// the act.
Task<void> declassify(Exchange& exchange);
/// GET /metrics
Task<void> show_metrics(Exchange& exchange);
/// GET and DELETE /v1/responses/{id}
Task<void> show_response(Exchange& exchange, std::string id);
Task<void> delete_response(Exchange& exchange, std::string id);

}  // namespace molly::gateway
