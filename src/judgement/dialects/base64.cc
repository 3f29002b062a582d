#include "dialects/internal/base64.h"

#include <array>
#include <bit>
#include <cstdint>

namespace molly::dialects {
namespace {

constexpr std::string_view alphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<std::int8_t, 256> values_of_alphabet() {
    std::array<std::int8_t, 256> values = {};
    values.fill(-1);
    for (std::size_t i = 0; i < alphabet.size(); ++i)
        values[static_cast<unsigned char>(alphabet[i])] = static_cast<std::int8_t>(i);
    return values;
}

std::string bytes_of(std::span<const float> floats) {
    std::string bytes;
    bytes.reserve(floats.size() * 4);
    for (const float number : floats) {
        const auto bits = std::bit_cast<std::uint32_t>(number);
        for (const unsigned shift : {0U, 8U, 16U, 24U})
            bytes += static_cast<char>((bits >> shift) & 0xFFU);
    }
    return bytes;
}

std::optional<std::string> decode(std::string_view text) {
    static constexpr std::array<std::int8_t, 256> values = values_of_alphabet();
    while (text.ends_with('='))
        text.remove_suffix(1);
    std::string bytes;
    bytes.reserve(text.size() * 3 / 4);
    std::uint32_t held = 0;
    unsigned bits = 0;
    for (const char c : text) {
        const std::int8_t value = values[static_cast<unsigned char>(c)];
        if (value < 0) return std::nullopt;
        held = (held << 6U) | static_cast<std::uint32_t>(value);
        bits += 6;
        if (bits < 8) continue;
        bits -= 8;
        bytes += static_cast<char>((held >> bits) & 0xFFU);
    }
    return bytes;
}

}  // namespace

std::string base64_of(std::span<const float> floats) {
    const std::string bytes = bytes_of(floats);
    std::string text;
    text.reserve((bytes.size() + 2) / 3 * 4);
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        std::uint32_t group = 0;
        for (std::size_t k = 0; k < 3; ++k) {
            const auto byte = i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U;
            group = (group << 8U) | byte;
        }
        const std::size_t present = std::min<std::size_t>(bytes.size() - i, 3);
        for (std::size_t k = 0; k < 4; ++k)
            text += k <= present ? alphabet[(group >> (18U - 6U * k)) & 0x3FU] : '=';
    }
    return text;
}

std::optional<std::vector<float>> floats_from_base64(std::string_view text) {
    const std::optional<std::string> bytes = decode(text);
    if (!bytes || bytes->size() % 4 != 0) return std::nullopt;
    std::vector<float> floats;
    floats.reserve(bytes->size() / 4);
    for (std::size_t i = 0; i < bytes->size(); i += 4) {
        std::uint32_t bits = 0;
        for (std::size_t k = 4; k-- > 0;)
            bits = (bits << 8U) | static_cast<unsigned char>((*bytes)[i + k]);
        floats.push_back(std::bit_cast<float>(bits));
    }
    return floats;
}

}  // namespace molly::dialects
