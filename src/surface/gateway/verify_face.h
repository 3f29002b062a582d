#pragma once
// Checks tokens that another device drafted for an answer that is made here.
#include "gateway/exchange.h"

namespace molly::gateway {

/// Opens a session, or checks a block in one that is open.
Task<void> verify(Exchange& exchange);

}  // namespace molly::gateway
