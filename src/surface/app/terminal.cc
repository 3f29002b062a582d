#include "app/terminal.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "base/json.h"

namespace molly::app {
namespace {

void put(std::FILE* stream, std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stream);
    std::fflush(stream);
}

/// Columns that a text takes, one for each code point.
std::size_t width_of(std::string_view text) {
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
        return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
    }));
}

}  // namespace

bool standard_error_is_terminal() noexcept {
    return isatty(STDERR_FILENO) != 0;
}
bool standard_input_is_terminal() noexcept {
    return isatty(STDIN_FILENO) != 0;
}
bool standard_output_is_terminal() noexcept {
    return isatty(STDOUT_FILENO) != 0;
}

ExitCode exit_code_of(const Error& error) noexcept {
    switch (error.code()) {
        case ErrorCode::invalid_request:
        case ErrorCode::too_large:
        case ErrorCode::unsupported:
            return exit_usage;
        case ErrorCode::unauthenticated:
        case ErrorCode::denied:
            return exit_denied;
        case ErrorCode::not_found:
            return exit_not_found;
        case ErrorCode::rate_limited:
        case ErrorCode::exhausted:
        case ErrorCode::deadline_exceeded:
        case ErrorCode::unavailable:
        case ErrorCode::upstream_failed:
            return exit_unavailable;
        case ErrorCode::conflict:
        case ErrorCode::cancelled:
        case ErrorCode::corrupt:
        case ErrorCode::internal:
            break;
    }
    return exit_failed;
}

std::vector<std::string> Terminal::words(
    std::initializer_list<std::pair<std::string_view, std::string_view>> pairs) const {
    std::vector<std::string> row;
    for (const auto& [english, italian] : pairs)
        row.emplace_back(say(english, italian));
    return row;
}

void Terminal::line(std::string_view text) const {
    put(stdout, fmt::format("{}\n", text));
}

void Terminal::raw(std::string_view text) const {
    put(stdout, text);
}

void Terminal::note(std::string_view text) const {
    const bool dim = standard_error_is_terminal();
    put(stderr, dim ? fmt::format("\x1b[2m{}\x1b[0m\n", text) : fmt::format("{}\n", text));
}

ExitCode Terminal::failed(const Error& error) const {
    if (json) {
        std::string text = "{\"error\":{\"code\":";
        append_json_string(text, to_string(error.code()));
        text += ",\"message\":";
        append_json_string(text, message_in(error, language));
        if (!error.reason().empty()) {
            text += ",\"reason\":";
            append_json_string(text, error.reason());
        }
        line(text + "}}");
    } else {
        put(stderr, fmt::format("molly: {}\n", message_in(error, language)));
    }
    return exit_code_of(error);
}

void Terminal::table(const std::vector<std::vector<std::string>>& rows) const {
    std::vector<std::size_t> widths;
    for (const auto& row : rows) {
        widths.resize(std::max(widths.size(), row.size()));
        for (std::size_t i = 0; i < row.size(); ++i)
            widths[i] = std::max(widths[i], width_of(row[i]));
    }
    for (const auto& row : rows) {
        std::string text;
        for (std::size_t i = 0; i < row.size(); ++i) {
            text += row[i];
            if (i + 1 < row.size()) text.append(widths[i] - width_of(row[i]) + 2, ' ');
        }
        line(text);
    }
}

void ProgressBar::show(std::uint64_t done, std::uint64_t total) {
    if (!standard_error_is_terminal()) return;
    const auto now = std::chrono::steady_clock::now();
    if (now - drawn_ < std::chrono::milliseconds(100) && done != total) return;
    drawn_ = now;
    visible_ = true;
    std::string text = fmt::format("\r\x1b[K{} ", label_);
    if (total > 0) {
        constexpr std::uint64_t cells = 30;
        const auto full = static_cast<std::size_t>(std::min(done, total) * cells / total);
        text += fmt::format("[{}{}] {:3}%  ", std::string(full, '#'),
                            std::string(cells - full, '.'), std::min(done, total) * 100 / total);
        text += fmt::format("{} / {}", byte_size(done), byte_size(total));
    } else {
        text += byte_size(done);
    }
    put(stderr, text);
}

ProgressBar::~ProgressBar() {
    if (visible_) put(stderr, "\r\x1b[K");
}

std::string byte_size(std::uint64_t bytes) {
    double value = static_cast<double>(bytes);
    std::string_view unit = "B";
    for (const std::string_view next : {"kB", "MB", "GB", "TB"}) {
        if (value < 1000) break;
        value /= 1000;
        unit = next;
    }
    return unit == "B" ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, unit);
}

}  // namespace molly::app
