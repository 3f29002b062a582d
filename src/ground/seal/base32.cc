#include <string>

#include "seal/seal.h"

namespace molly::seal {
namespace {

constexpr std::string_view letters = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// The value of a letter as people write it, or -1.
int value_of(char c) noexcept {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    if (c == 'O') c = '0';
    if (c == 'I' || c == 'L') c = '1';
    const std::size_t at = letters.find(c);
    return at == std::string_view::npos ? -1 : static_cast<int>(at);
}

}  // namespace

std::string to_base32(std::string_view bytes) {
    std::string text;
    unsigned bits = 0;
    unsigned held = 0;
    for (const char c : bytes) {
        bits = (bits << 8U) | static_cast<unsigned char>(c);
        for (held += 8; held >= 5; held -= 5)
            text += letters[(bits >> (held - 5U)) & 31U];
    }
    if (held > 0) text += letters[(bits << (5U - held)) & 31U];
    return text;
}

Result<std::string> from_base32(std::string_view text) {
    std::string bytes;
    unsigned bits = 0;
    unsigned held = 0;
    for (const char c : text) {
        if (c == '-' || c == ' ') continue;
        const int value = value_of(c);
        if (value < 0) return fail(ErrorCode::invalid_request, "the text is not base 32");
        bits = (bits << 5U) | static_cast<unsigned>(value);
        held += 5;
        if (held < 8) continue;
        held -= 8;
        bytes += static_cast<char>((bits >> held) & 0xFFU);
    }
    const bool padded = held < 5 && (bits & ((1U << held) - 1U)) == 0;
    if (!padded) return fail(ErrorCode::invalid_request, "the text is not base 32");
    return bytes;
}

}  // namespace molly::seal
