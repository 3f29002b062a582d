// What an upstream's refusal means for us. Its body is looked at, never repeated: it may quote a
// key (case 25).
#include <array>
#include <charconv>

#include <fmt/format.h>

#include "dialects/internal/upstream.h"

namespace molly::dialects {
namespace {

constexpr std::array<std::string_view, 4> overflow_marks = {
    "context_length_exceeded", "prompt is too long", "maximum context length",
    "exceeds the available context size"};

bool speaks_of_overflow(std::string_view body) {
    for (const std::string_view mark : overflow_marks) {
        if (body.find(mark) != std::string_view::npos) return true;
    }
    return false;
}

std::optional<std::chrono::seconds> wait_of(std::string_view retry_after) {
    constexpr unsigned wait_max = 86'400;
    unsigned seconds = 0;
    const char* end = retry_after.data() + retry_after.size();
    const auto parsed = std::from_chars(retry_after.data(), end, seconds);
    // A fraction or a date (RFC 9110, 10.2.3) is rare: the router's own pause stands then.
    if (parsed.ec != std::errc() || parsed.ptr != end || seconds > wait_max) return std::nullopt;
    return std::chrono::seconds(seconds);
}

Error with_wait(Error error, std::string_view retry_after) {
    if (const auto wait = wait_of(retry_after)) return std::move(error).retry_after(*wait);
    return error;
}

Error refusal(int status, std::string_view body) {
    if (speaks_of_overflow(body)) {
        return Error(ErrorCode::invalid_request,
                     "the prompt is longer than the context of the target's model")
            .reason("context_length_exceeded");
    }
    return Error(ErrorCode::invalid_request,
                 fmt::format("the target refused the request with HTTP {}", status))
        .reason("upstream_refused");
}

}  // namespace

Error decode_upstream_error(domain::Dialect /*dialect*/, int status, std::string_view body,
                            std::string_view retry_after) {
    switch (status) {
        case 401:
        case 403:
            return Error(ErrorCode::unavailable,
                         fmt::format("the target refused our credentials with HTTP {}; check its "
                                     "key in the configuration",
                                     status))
                .reason("upstream_unauthenticated");
        case 402:
            return Error(ErrorCode::unavailable, "the account at the target has no credit left")
                .reason("upstream_no_credit");
        case 404:
            return Error(ErrorCode::unavailable,
                         "the target does not know the model or the path; check its declaration")
                .reason("upstream_not_found");
        case 408:
            return with_wait(Error(ErrorCode::upstream_failed, "the target timed out")
                                 .reason("upstream_timeout"),
                             retry_after);
        case 413:
            return Error(ErrorCode::too_large, "the target finds the request too large")
                .reason("upstream_too_large");
        case 429:
            return with_wait(
                Error(ErrorCode::rate_limited, "the target limits how often we may ask")
                    .reason("upstream_rate_limited"),
                retry_after);
        case 502:
        case 503:
        case 529:
            return with_wait(Error(ErrorCode::unavailable,
                                   fmt::format("the target is not available (HTTP {})", status))
                                 .reason("upstream_unavailable"),
                             retry_after);
        default:
            break;
    }
    if (status >= 400 && status < 500) return refusal(status, body);
    return with_wait(
        Error(ErrorCode::upstream_failed, fmt::format("the target failed with HTTP {}", status))
            .reason("upstream_failed"),
        retry_after);
}

}  // namespace molly::dialects
