#include "pipeline/internal/record.h"

#include <algorithm>

#include <fmt/format.h>

namespace molly::pipeline {
namespace {

using domain::Outcome;

Outcome outcome_of(const domain::Trace& trace, const Error& error, bool begun) noexcept {
    const ErrorCode code = error.code();
    if (code == ErrorCode::cancelled) return Outcome::cancelled;
    if (begun) return Outcome::truncated;
    const bool limit = code == ErrorCode::rate_limited || code == ErrorCode::exhausted;
    const bool refusal = code == ErrorCode::denied || (limit && trace.attempts.empty());
    return refusal ? Outcome::refused : Outcome::failed;
}

}  // namespace

/// The line of the attempt whose answer, or beginning of one, the caller has.
const domain::Attempt& serving(const domain::Trace& trace) noexcept {
    const auto last = [&](bool failed) {
        return std::find_if(trace.attempts.rbegin(), trace.attempts.rend(),
                            [&](const domain::Attempt& one) {
                                return one.failed.has_value() == failed && !one.rejected &&
                                       one.cause != domain::Cause::verification;
                            });
    };
    if (const auto good = last(false); good != trace.attempts.rend()) return *good;
    const auto bad = last(true);
    return bad == trace.attempts.rend() ? trace.attempts.back() : *bad;
}

domain::Trace begin_trace(const domain::Request& request, WallTime now) {
    domain::Trace trace;
    trace.id = request.id;
    trace.time = now;
    trace.dialect = request.dialect;
    trace.operation = request.operation;
    trace.stream = request.stream;
    trace.member = request.caller.member;
    trace.key_id = request.caller.key_id;
    trace.app = request.caller.app;
    trace.model_asked = request.model;
    return trace;
}

void note_outcome(domain::Trace& trace, const Error* error, bool begun) {
    const bool served = error == nullptr || begun;
    if (served) {
        const domain::Attempt& line = serving(trace);
        trace.target = line.target;
        trace.adapter = line.adapter;
    }
    if (error == nullptr) {
        trace.outcome = Outcome::answered;
        return;
    }
    trace.outcome = outcome_of(trace, *error, begun);
    trace.failure = error->reason().empty()
                        ? std::string(to_string(error->code()))
                        : fmt::format("{}: {}", to_string(error->code()), error->reason());
}

void add_up(domain::Trace& trace) {
    for (const domain::Attempt& attempt : trace.attempts)
        trace.cost += attempt.cost;
    if (trace.target.empty()) return;
    const domain::Attempt& line = serving(trace);
    trace.usage = line.usage;
    if (trace.first_token.count() > 0) return;  // it was held back, and told all at once
    for (const domain::Attempt& attempt : trace.attempts) {
        if (&attempt == &line) break;
        trace.first_token += attempt.duration;
    }
    trace.first_token += line.first_token;
}

std::uint64_t tokens_of(const domain::Trace& trace) noexcept {
    std::uint64_t tokens = 0;
    for (const domain::Attempt& attempt : trace.attempts)
        tokens += std::uint64_t{attempt.usage.prompt_tokens} + attempt.usage.answer_tokens;
    return tokens;
}

Error unrecorded(const Error& cause) {
    return Error(
               ErrorCode::unavailable,
               fmt::format("the answer came, but its trace and receipt could not be written ({}); "
                           "run `molly doctor`",
                           cause.message()))
        .reason("trace_not_committed")
        .italian(fmt::format("la risposta è arrivata, ma traccia e ricevuta non si sono potute "
                             "scrivere ({}); eseguire `molly doctor`",
                             cause.message_italian()));
}

}  // namespace molly::pipeline
