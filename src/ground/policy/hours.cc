#include "policy/hours.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include <fmt/format.h>

namespace molly::policy {
namespace {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::minutes;

constexpr std::array<std::string_view, 7> weekday_names = {"mon", "tue", "wed", "thu",
                                                           "fri", "sat", "sun"};

// Zones that keep the summer time of the Union, by their winter offset in hours.
constexpr std::array<std::pair<std::string_view, std::int16_t>, 24> european_zones = {
    {{"Europe/Lisbon", 0},     {"Europe/Dublin", 0},     {"Europe/London", 0},
     {"Europe/Rome", 1},       {"Europe/Paris", 1},      {"Europe/Berlin", 1},
     {"Europe/Madrid", 1},     {"Europe/Vienna", 1},     {"Europe/Zurich", 1},
     {"Europe/Amsterdam", 1},  {"Europe/Brussels", 1},   {"Europe/Luxembourg", 1},
     {"Europe/Copenhagen", 1}, {"Europe/Stockholm", 1},  {"Europe/Oslo", 1},
     {"Europe/Warsaw", 1},     {"Europe/Prague", 1},     {"Europe/Budapest", 1},
     {"Europe/Ljubljana", 1},  {"Europe/San_Marino", 1}, {"Europe/Athens", 2},
     {"Europe/Helsinki", 2},   {"Europe/Bucharest", 2},  {"Europe/Sofia", 2}}};

std::optional<int> number(std::string_view text) {
    int value = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.size() != 2 || read.ptr != text.data() + text.size()) return std::nullopt;
    return value;
}

/// `19:30` as minutes, up to 24:00.
std::optional<std::uint16_t> clock_from(std::string_view text) {
    if (text.size() != 5 || text[2] != ':') return std::nullopt;
    const auto hour = number(text.substr(0, 2));
    const auto minute = number(text.substr(3));
    if (!hour || !minute || *hour < 0 || *minute < 0 || *minute > 59) return std::nullopt;
    const int all = *hour * 60 + *minute;
    return all <= 24 * 60 ? std::optional(static_cast<std::uint16_t>(all)) : std::nullopt;
}

/// 01:00 UTC on the last Sunday of `month`.
WallTime change(std::chrono::year year, std::chrono::month month) {
    const std::chrono::sys_days day = year / month / std::chrono::Sunday[std::chrono::last];
    return WallTime(day) + hours(1);
}

bool in_european_summer(WallTime time) {
    const std::chrono::year_month_day date(std::chrono::floor<days>(time));
    return time >= change(date.year(), std::chrono::March) &&
           time < change(date.year(), std::chrono::October);
}

Error wrong(std::string english, std::string italian) {
    return Error(ErrorCode::invalid_request, std::move(english)).italian(std::move(italian));
}

Result<void> read_zone(std::string_view zone, Hours& out) {
    out.zone = zone;
    if (zone == "UTC") return {};
    for (const auto& [name, offset] : european_zones) {
        if (name != zone) continue;
        out.offset = static_cast<std::int16_t>(offset * 60);
        out.european_summer = true;
        return {};
    }
    const bool sign = zone.size() == 6 && (zone[0] == '+' || zone[0] == '-');
    const auto shift = sign ? clock_from(zone.substr(1)) : std::nullopt;
    if (shift && *shift <= 14 * 60) {
        out.offset = static_cast<std::int16_t>(zone[0] == '-' ? -*shift : *shift);
        return {};
    }
    return fail(
        wrong("zone must be UTC, an offset such as +01:00, or a European zone such as "
              "Europe/Rome",
              "zone deve essere UTC, uno scarto come +01:00, o una zona europea come "
              "Europe/Rome"));
}

}  // namespace

bool Hours::contains(WallTime time) const noexcept {
    WallTime local = time + minutes(offset);
    if (european_summer && in_european_summer(time)) local += hours(1);
    const auto day = std::chrono::floor<days>(local);
    const unsigned weekday = std::chrono::weekday(day).iso_encoding() - 1;
    if ((weekdays & (1U << weekday)) == 0) return false;
    const auto minute = std::chrono::floor<minutes>(local - day).count();
    return from < until ? minute >= from && minute < until : minute >= from || minute < until;
}

Result<Hours> hours_from(std::string_view hours, const std::vector<std::string>& weekdays,
                         std::string_view zone) {
    Hours out;
    TRY_DO(read_zone(zone, out));
    if (!hours.empty()) {
        const bool shape = hours.size() == 11 && hours[5] == '-';
        const auto from = shape ? clock_from(hours.substr(0, 5)) : std::nullopt;
        const auto until = shape ? clock_from(hours.substr(6)) : std::nullopt;
        if (!from || !until || *from == *until || *from == 24 * 60) {
            return fail(wrong("hours must be like 08:00-19:00 (or 22:00-06:00, over midnight)",
                              "hours deve essere come 08:00-19:00 (o 22:00-06:00, oltre "
                              "mezzanotte)"));
        }
        out.from = *from;
        out.until = *until;
    }
    if (weekdays.empty()) return out;
    out.weekdays = 0;
    for (const std::string& name : weekdays) {
        const auto known = std::find(weekday_names.begin(), weekday_names.end(), name);
        if (known == weekday_names.end()) {
            return fail(wrong("weekdays are mon, tue, wed, thu, fri, sat, sun",
                              "i giorni sono mon, tue, wed, thu, fri, sat, sun"));
        }
        out.weekdays =
            static_cast<std::uint8_t>(out.weekdays | (1U << (known - weekday_names.begin())));
    }
    return out;
}

}  // namespace molly::policy
