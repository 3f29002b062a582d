#pragma once
// The languages in which Molly speaks to people. Pure.
#include <cstdint>
#include <string_view>

#include "base/error.h"

namespace molly {

enum class Language : std::uint8_t { english, italian };

/// The language that a POSIX locale (`it_IT.UTF-8`) or an Accept-Language header (RFC 9110, 12.5.4)
/// asks for.
Language language_of(std::string_view locale_or_header) noexcept;

/// The message of `error` in that language.
inline const std::string& message_in(const Error& error, Language language) noexcept {
    return language == Language::italian ? error.message_italian() : error.message();
}

/// The one of two sentences that fits: `say(language, "Done.", "Fatto.")`.
inline std::string_view say(Language language, std::string_view english,
                            std::string_view italian) noexcept {
    return language == Language::italian ? italian : english;
}

}  // namespace molly
