#pragma once
// What the answers to one request may cost together. Pure.
#include "pipeline/pipeline.h"

namespace molly::pipeline {

struct Room {
    std::uint32_t answers = 0;  ///< each of the request's prompt and answer tokens
    domain::Money cost;
};

/// When every answer that may be rejected is: all of a mixture, one on each tier, with the samples
/// and verifications that tell, and with a hedge.
Room room_of(const router::Plan& plan, const domain::CapabilityProfile& needs, const Parts& parts);

}  // namespace molly::pipeline
