#pragma once
// Base64 (RFC 4648, 4) of vectors, as the openai clients ask for them. Pure.
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace molly::dialects {

/// The bytes of little-endian 32-bit floats.
std::string base64_of(std::span<const float> floats);

/// The reverse; nothing when the text is not that.
std::optional<std::vector<float>> floats_from_base64(std::string_view text);

}  // namespace molly::dialects
