#pragma once
// Server-sent events (WHATWG HTML, 9.2) and lines, from pieces that may cut anywhere. Values.
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace molly::dialects {

/// Cuts a byte stream into lines ended by LF, CR LF or CR.
class LineReader {
public:
    static constexpr std::size_t line_bytes_max = 8U << 20U;

    /// Calls `each` for every line that is complete now; its view is valid during the call.
    /// Errors: upstream_failed, when a line is too long; those of `each`.
    Result<void> piece(std::string_view bytes,
                       const std::function<Result<void>(std::string_view)>& each);
    /// The unfinished line at the end of the stream.
    std::string_view rest() const noexcept { return held_; }

private:
    std::string held_;
    bool after_cr_ = false;  // a LF that comes now belongs to the CR before it
};

struct SseEvent {
    std::string_view name;  ///< of the `event` field; empty for none
    std::string_view data;  ///< all `data` lines, joined by LF
};

/// Reads events. Comments, ids and retry times are ignored.
class SseReader {
public:
    using Each = std::function<Result<void>(const SseEvent&)>;

    /// Calls `each` for every event that is complete now.
    /// Errors: upstream_failed, when a line or an event is too long; those of `each`.
    Result<void> piece(std::string_view bytes, const Each& each);
    /// Delivers what stands before the end of the stream without a blank line: the standard would
    /// drop it, but servers exist that forget that line after their last event.
    Result<void> end(const Each& each);

private:
    Result<void> line(std::string_view line, const Each& each);
    Result<void> deliver(const Each& each);

    LineReader lines_;
    std::string name_;
    std::string data_;
    bool has_data_ = false;
    bool first_ = true;  // a byte-order mark may stand before the first line
};

}  // namespace molly::dialects
