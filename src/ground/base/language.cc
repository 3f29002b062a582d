#include "base/language.h"

#include <cctype>
#include <charconv>

namespace molly {
namespace {

bool names(std::string_view entry, std::string_view code) noexcept {
    if (entry.size() < 2) return false;
    const auto lower = [](char c) {
        return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    };
    if (lower(entry[0]) != code[0] || lower(entry[1]) != code[1]) return false;
    return entry.size() == 2 || std::isalpha(static_cast<unsigned char>(entry[2])) == 0;
}

double weight(std::string_view entry) noexcept {
    const std::size_t at = entry.find("q=");
    double q = 1.0;
    if (at != std::string_view::npos)
        std::from_chars(entry.data() + at + 2, entry.data() + entry.size(), q);
    return q;
}

}  // namespace

Language language_of(std::string_view locale_or_header) noexcept {
    double italian = 0;
    double english = 0;
    while (!locale_or_header.empty()) {
        const std::size_t comma = locale_or_header.find(',');
        std::string_view entry = locale_or_header.substr(0, comma);
        locale_or_header.remove_prefix(comma == std::string_view::npos ? locale_or_header.size()
                                                                       : comma + 1);
        while (!entry.empty() && entry.front() == ' ')
            entry.remove_prefix(1);
        if (names(entry, "it")) italian = weight(entry);
        if (names(entry, "en")) english = weight(entry);
    }
    return italian > english ? Language::italian : Language::english;
}

}  // namespace molly
