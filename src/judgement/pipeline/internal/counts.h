#pragma once
// What the pipeline counts. Labels come from closed sets. Safe from any thread.
#include "base/metrics.h"
#include "domain/trace.h"

namespace molly::pipeline {

class Counts {
public:
    explicit Counts(Metrics& metrics);
    /// Counts a request that has ended; `error` is null when it was answered.
    void ended(const domain::Trace& trace, const Error* error);

private:
    Metrics& metrics_;
    Histogram& duration_;
    Histogram& first_token_;
    Counter& prompt_tokens_;
    Counter& answer_tokens_;
};

}  // namespace molly::pipeline
