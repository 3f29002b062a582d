#include <charconv>
#include <cmath>
#include <sstream>

#include <fmt/format.h>

#include "scenarios/scenario.h"

namespace molly::scenarios {

std::string trim(const std::string& text) {
    const auto begin = text.find_first_not_of(" \t\r");
    if (begin == std::string::npos) return {};
    return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> parts;
    std::istringstream stream(text);
    for (std::string part; std::getline(stream, part, separator);) {
        if (!trim(part).empty()) parts.push_back(trim(part));
    }
    return parts;
}

std::string take_word(std::string& text) {
    text = trim(text);
    const auto end = text.find(' ');
    std::string word = text.substr(0, end);
    text = end == std::string::npos ? std::string() : trim(text.substr(end));
    return word;
}

std::optional<double> number_from(std::string_view text) noexcept {
    double number = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
    if (read.ec != std::errc() || !std::isfinite(number) || std::abs(number) > 1e12)
        return std::nullopt;
    return number;
}

std::optional<std::uint32_t> count_from(std::string_view text) noexcept {
    std::uint32_t number = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
    if (read.ec != std::errc() || number > 10'000'000) return std::nullopt;
    return number;
}

Error at_line(int number, const std::string& what) {
    return {ErrorCode::invalid_request, fmt::format("line {}: {}", number, what)};
}

Result<std::vector<Block>> blocks_of(const std::string& text) {
    std::vector<Block> blocks;
    std::istringstream stream(text);
    int number = 0;
    for (std::string raw; std::getline(stream, raw);) {
        ++number;
        const std::string content = trim(raw);
        if (content.empty() || content[0] == '#') continue;
        Line line;
        line.number = number;
        const auto colon = content.find(':');
        line.word = trim(content.substr(0, colon));
        if (colon != std::string::npos) line.rest = trim(content.substr(colon + 1));
        const bool below = raw[0] == ' ' || raw[0] == '\t';
        if (!below) {
            blocks.push_back({line, {}});
        } else if (blocks.empty()) {
            return fail(at_line(number, "an indented line needs a heading above it"));
        } else {
            blocks.back().lines.push_back(line);
        }
    }
    return blocks;
}

}  // namespace molly::scenarios
