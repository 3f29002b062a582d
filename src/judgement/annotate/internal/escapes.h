#pragma once
// JSON escapes undone: the form in which a model reads a text. Pure.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "domain/finding.h"

namespace molly::annotate {

/// `text` with JSON escapes undone (`\u00e8`, `\n`, `\"`).
std::string without_escapes(std::string_view text);

/// The same, and where each of its bytes comes from.
struct Unescaped {
    std::string text;
    /// shape: [text.size() + 1]; the place in the escaped text of each byte, those of one escape
    /// all at its backslash; the last one is the escaped text's end.
    std::vector<std::uint32_t> origins;
};
Unescaped unescape(std::string_view text);

/// A finding in the unescaped text, in bytes of the escaped one, whole escapes included.
domain::Finding in_origin(const Unescaped& unescaped, domain::Finding finding) noexcept;

}  // namespace molly::annotate
