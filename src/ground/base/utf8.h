#pragma once
// UTF-8 at byte level (RFC 3629). Pure.
#include <cstddef>
#include <string>
#include <string_view>

namespace molly {

/// Bytes of the complete, valid code point at the start of `text`; 0 when there is none.
std::size_t utf8_length(std::string_view text) noexcept;

/// Bytes at the end of `text` that begin a code point which is not complete yet (0 to 3).
std::size_t utf8_incomplete_tail(std::string_view text) noexcept;

/// Whether all of `text` is valid.
bool utf8_valid(std::string_view text) noexcept;

/// Re-assembles code points that arrive in pieces: what comes out is always valid UTF-8.
class Utf8Stream {
public:
    /// The text that is complete now; an unfinished tail is held, invalid bytes become U+FFFD.
    std::string push(std::string_view piece);
    /// Whether bytes are held. At the end of a stream they are dropped.
    bool holding() const noexcept { return !held_.empty(); }

private:
    std::string held_;
};

}  // namespace molly
