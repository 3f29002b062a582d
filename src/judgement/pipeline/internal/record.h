#pragma once
// The trace of one request, from its first line to its sum. Pure.
#include "base/error.h"
#include "domain/trace.h"

namespace molly::pipeline {

/// What is known before anything was decided.
domain::Trace begin_trace(const domain::Request& request, WallTime now);

/// The attempt whose answer the caller has, or the beginning of one: neither failed nor rejected,
/// else the last that failed.
const domain::Attempt& serving(const domain::Trace& trace) noexcept;

/// How it ended; `error` is null when it was answered, `begun` says that the edge had begun.
void note_outcome(domain::Trace& trace, const Error* error, bool begun);

/// Sums the attempts: cost of all, usage of the one that answered or broke off.
void add_up(domain::Trace& trace);

/// Tokens of all attempts.
std::uint64_t tokens_of(const domain::Trace& trace) noexcept;

/// The error of an answer that could not be recorded.
Error unrecorded(const Error& cause);

}  // namespace molly::pipeline
