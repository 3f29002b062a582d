#pragma once
// One structured line of JSON per event on standard error. Content has no way in: it neither
// streams nor converts.
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

namespace molly {

enum class LogLevel : std::uint8_t { debug, info, warning, error };

/// One key and its value, already rendered.
struct LogField {
    LogField(std::string_view name, std::string_view value) : key(name), text(value) {}
    LogField(std::string_view name, const char* value) : key(name), text(value) {}
    template <class Number>
        requires std::is_arithmetic_v<Number>
    LogField(std::string_view name, Number value) : key(name), text(number(value)), quoted(false) {}

    std::string_view key;
    std::string text;
    bool quoted = true;

private:
    static std::string number(double value);
    static std::string number(std::int64_t value);
    template <class Number>
    static std::string number(Number value) {
        if constexpr (std::is_floating_point_v<Number>) {
            return number(static_cast<double>(value));
        } else {
            return number(static_cast<std::int64_t>(value));
        }
    }
};

/// Events below this level are dropped; the default is `info`.
void set_log_level(LogLevel level) noexcept;
bool log_enabled(LogLevel level) noexcept;

/// Writes one line. Safe from any thread.
void log_event(LogLevel level, std::string_view event, std::initializer_list<LogField> fields = {});

}  // namespace molly
