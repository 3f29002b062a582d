#pragma once
// A request on its way from the plan to its answer. Values.
#include <memory>

#include "domain/response.h"
#include "pipeline/pipeline.h"

namespace molly::pipeline {

/// A request that may be attempted: cleared, planned, with room reserved in its key's limits.
struct Prepared {
    std::shared_ptr<const policy::ClearedRequest> cleared;
    router::Plan plan;
    bool aliased = false;
    /// The key's limits have room for all the answers that the plan may take, not for one alone.
    bool several = true;
    std::shared_ptr<const Rules> rules;  ///< by which it was cleared
    std::unique_ptr<members::Reservation> reservation;
};

/// What the edge was told, and the answer that went with it.
struct Outcome {
    Served served;
    domain::Response response;
};

}  // namespace molly::pipeline
