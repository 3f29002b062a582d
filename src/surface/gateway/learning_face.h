#pragma once
// What the router learns: judgements of answers, and the estimates made of them.
#include "gateway/exchange.h"

namespace molly::gateway {

/// POST /molly/v1/feedback with {"receipt", "score"} or {"receipt", "thumb": "up" | "down"}, for
/// whoever may see the trace; each answer once.
Task<void> give_feedback(Exchange& exchange);
/// GET /molly/v1/priors, for admins; with `?precision=0.9` also where judged answers draw the line.
Task<void> list_priors(Exchange& exchange);
/// POST /molly/v1/priors with {"rows": [{"target", "adapter", "field", "band", "mean", "weight"}]},
/// for admins: adds what an evaluation has measured; rows with "confidence" and "score" are judged
/// answers.
Task<void> add_priors(Exchange& exchange);

}  // namespace molly::gateway
