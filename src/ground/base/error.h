#pragma once
// How everything in Molly fails: one error type, at most sixteen codes. Values; safe from any
// thread.
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace molly {

/// What the caller may do about a failure; the message says what happened.
enum class ErrorCode : std::uint8_t {
    invalid_request,    ///< mend the request, then send it again
    unauthenticated,    ///< present a valid key
    denied,             ///< a rule forbids it; never retried, never sent to a wider tier
    not_found,          ///< name something that exists
    conflict,           ///< the state changed meanwhile: look, then decide
    too_large,          ///< send less
    rate_limited,       ///< wait for `retry_after`
    exhausted,          ///< a budget, queue or memory is full
    cancelled,          ///< the caller left
    deadline_exceeded,  ///< allow more time
    unavailable,        ///< another target may do; the body was not accepted
    upstream_failed,    ///< another target may do; the body may have been accepted
    corrupt,            ///< stored or received bytes are damaged
    unsupported,        ///< this build or target cannot do it
    internal,           ///< a fault of Molly
};

/// The code's stable name, as it appears in logs and bodies.
std::string_view to_string(ErrorCode code) noexcept;

/// One failure. The message never quotes content or a key.
class [[nodiscard]] Error {
public:
    Error(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}

    ErrorCode code() const noexcept { return code_; }
    /// What happened and what to do, in English.
    const std::string& message() const noexcept { return message_; }
    /// The same in Italian; the English text where nobody wrote one.
    const std::string& message_italian() const noexcept {
        return italian_.empty() ? message_ : italian_;
    }
    /// A stable token more precise than the code (`context_length_exceeded`), or empty.
    const std::string& reason() const noexcept { return reason_; }
    /// The path of the offending field (`messages[2].content`), or empty.
    const std::string& param() const noexcept { return param_; }
    /// How long to wait before trying again, when the failing side said so.
    std::optional<std::chrono::seconds> retry_after() const noexcept { return retry_after_; }

    Error&& italian(std::string text) && {
        italian_ = std::move(text);
        return std::move(*this);
    }
    Error&& reason(std::string token) && {
        reason_ = std::move(token);
        return std::move(*this);
    }
    Error&& param(std::string path) && {
        param_ = std::move(path);
        return std::move(*this);
    }
    Error&& retry_after(std::chrono::seconds wait) && {
        retry_after_ = wait;
        return std::move(*this);
    }

private:
    ErrorCode code_;
    std::string message_;
    std::string italian_;
    std::string reason_;
    std::string param_;
    std::optional<std::chrono::seconds> retry_after_;
};

}  // namespace molly
