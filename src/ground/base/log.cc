#include "base/log.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/json.h"

namespace molly {
namespace {

std::atomic<LogLevel> threshold = LogLevel::info;
constexpr std::array<std::string_view, 4> level_names = {"debug", "info", "warning", "error"};

}  // namespace

std::string LogField::number(double value) {
    return fmt::format("{:.6g}", value);
}
std::string LogField::number(std::int64_t value) {
    return fmt::format("{}", value);
}

void set_log_level(LogLevel level) noexcept {
    threshold.store(level, std::memory_order_relaxed);
}
bool log_enabled(LogLevel level) noexcept {
    return level >= threshold.load(std::memory_order_relaxed);
}

void log_event(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) {
    if (!log_enabled(level)) return;
    const auto now =
        std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
    const auto millis = now.time_since_epoch().count() % 1000;
    std::string line = fmt::format(R"({{"time":"{:%FT%T}.{:03}Z","level":"{}","event":)",
                                   fmt::gmtime(std::chrono::system_clock::to_time_t(now)), millis,
                                   level_names[static_cast<std::size_t>(level)]);
    append_json_string(line, event);
    for (const LogField& field : fields) {
        line += ',';
        append_json_string(line, field.key);
        line += ':';
        if (field.quoted) {
            append_json_string(line, field.text);
        } else {
            line += field.text;
        }
    }
    line += "}\n";
    // One write per line keeps lines whole across threads; a failed write to stderr has no one left
    // to tell.
    (void)std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace molly
