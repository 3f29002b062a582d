#pragma once
// Writes the head of a reply. Pure but for the clock of its Date header.
#include <cstdint>
#include <string>
#include <string_view>

#include "net/http.h"

namespace molly::net::internal {

/// How the end of the body is told.
enum class Framing : std::uint8_t { length, chunked, until_close, none };

struct HeadFacts {
    int status = 200;
    Framing framing = Framing::length;
    std::size_t body_bytes = 0;  ///< for Framing::length
    bool keep_alive = true;
    bool http_1_0 = false;
};

/// Whether a reply of that status has no body at all (RFC 9110, 6.4.1).
bool bodyless_status(int status) noexcept;

/// Appends status line, `headers`, framing, connection and date. Headers that would break the
/// framing or the line are left out.
void append_head(std::string& out, const HeadFacts& facts, const Headers& headers);

/// Appends one chunk of a chunked body.
void append_chunk(std::string& out, std::string_view piece);

}  // namespace molly::net::internal
