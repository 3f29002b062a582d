#include "base/error.h"

namespace molly {

std::string_view to_string(ErrorCode code) noexcept {
    switch (code) {
        case ErrorCode::invalid_request:
            return "invalid_request";
        case ErrorCode::unauthenticated:
            return "unauthenticated";
        case ErrorCode::denied:
            return "denied";
        case ErrorCode::not_found:
            return "not_found";
        case ErrorCode::conflict:
            return "conflict";
        case ErrorCode::too_large:
            return "too_large";
        case ErrorCode::rate_limited:
            return "rate_limited";
        case ErrorCode::exhausted:
            return "exhausted";
        case ErrorCode::cancelled:
            return "cancelled";
        case ErrorCode::deadline_exceeded:
            return "deadline_exceeded";
        case ErrorCode::unavailable:
            return "unavailable";
        case ErrorCode::upstream_failed:
            return "upstream_failed";
        case ErrorCode::corrupt:
            return "corrupt";
        case ErrorCode::unsupported:
            return "unsupported";
        case ErrorCode::internal:
            return "internal";
    }
    return "internal";
}

}  // namespace molly
