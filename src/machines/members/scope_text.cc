#include <array>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "base/json.h"
#include "members/members.h"
#include "store/trace_text.h"

namespace molly::members {
namespace {

std::unexpected<Error> refuse(std::string_view field, std::string_view expected) {
    return fail(Error(ErrorCode::invalid_request, fmt::format("{}: expected {}", field, expected))
                    .italian(fmt::format("{}: valore non accettabile", field))
                    .param(std::string(field)));
}

Result<std::string> read_text(const json::value& value, std::string_view field) {
    if (!value.is_string()) return refuse(field, "a string");
    return std::string(value.get_string().data(), value.get_string().size());
}

Result<std::vector<std::string>> read_texts(const json::value& value, std::string_view field) {
    if (!value.is_array()) return refuse(field, "a list of strings");
    std::vector<std::string> texts;
    for (const json::value& element : value.get_array()) {
        TRY(std::string text, read_text(element, fmt::format("{}[{}]", field, texts.size())));
        texts.push_back(std::move(text));
    }
    return texts;
}

Result<domain::TierSet> read_tiers(const json::value& value) {
    TRY(const auto names, read_texts(value, "tiers"));
    domain::TierSet tiers;
    for (const std::string& name : names) {
        const auto tier = domain::tier_from(name);
        if (!tier) return refuse("tiers", "T0, T1, T2 or T3");
        tiers = tiers | domain::TierSet{*tier};
    }
    return tiers;
}

Result<domain::Sensitivity> read_class(const json::value& value, std::string_view field) {
    TRY(const std::string name, read_text(value, field));
    const auto sensitivity = domain::sensitivity_from(name);
    if (!sensitivity) return refuse(field, "public, standard, private or secret");
    return *sensitivity;
}

Result<std::uint32_t> read_count(const json::value& value, std::string_view field) {
    json::error_code error;
    const auto count = value.to_number<std::uint32_t>(error);
    if (error || !value.is_number() || count == 0) return refuse(field, "a whole number above 0");
    return count;
}

/// Exact for a decimal text; a JSON number is rounded to a billionth.
Result<domain::Money> read_money(const json::value& value, std::string_view field) {
    static constexpr double units_max = 9e9;
    const auto expected = "an amount such as 12.50, not negative";
    double units = 0;
    if (value.is_string()) {
        const std::string_view text(value.get_string().data(), value.get_string().size());
        const auto read = std::from_chars(text.data(), text.data() + text.size(), units,
                                          std::chars_format::fixed);
        if (read.ec != std::errc() || read.ptr != text.data() + text.size())
            return refuse(field, expected);
    } else {
        json::error_code error;
        units = value.to_number<double>(error);
        if (error) return refuse(field, expected);
    }
    if (!std::isfinite(units) || units < 0 || units > units_max) return refuse(field, expected);
    return domain::money_from(units);
}

bool read_digits(std::string_view& text, std::size_t count, int& number) {
    if (text.size() < count) return false;
    const auto read = std::from_chars(text.data(), text.data() + count, number);
    if (read.ec != std::errc() || read.ptr != text.data() + count || text[0] == '-') return false;
    text.remove_prefix(count);
    return true;
}

bool skip(std::string_view& text, char c) {
    if (!text.starts_with(c)) return false;
    text.remove_prefix(1);
    return true;
}

/// `2026-12-31`, or `2026-12-31T23:59:59Z` with an optional fraction (RFC 3339, UTC only).
std::optional<WallTime> parse_time(std::string_view text) {
    int year = 0;
    int month = 0;
    int day = 0;
    const bool date = read_digits(text, 4, year) && skip(text, '-') &&
                      read_digits(text, 2, month) && skip(text, '-') && read_digits(text, 2, day);
    const std::chrono::year_month_day ymd{std::chrono::year(year),
                                          std::chrono::month(static_cast<unsigned>(month)),
                                          std::chrono::day(static_cast<unsigned>(day))};
    if (!date || !ymd.ok()) return std::nullopt;
    WallTime time = std::chrono::sys_days(ymd);
    if (text.empty()) return time;
    int hour = 0;
    int minute = 0;
    int second = 0;
    const bool clock = skip(text, 'T') && read_digits(text, 2, hour) && skip(text, ':') &&
                       read_digits(text, 2, minute) && skip(text, ':') &&
                       read_digits(text, 2, second) && hour < 24 && minute < 60 && second < 60;
    if (!clock) return std::nullopt;
    time += std::chrono::hours(hour) + std::chrono::minutes(minute) + std::chrono::seconds(second);
    if (skip(text, '.')) {
        int micros = 0;
        if (!read_digits(text, 6, micros)) return std::nullopt;
        time += std::chrono::microseconds(micros);
    }
    return text == "Z" ? std::optional(time) : std::nullopt;
}

Result<WallTime> read_time(const json::value& value, std::string_view field) {
    TRY(const std::string text, read_text(value, field));
    const auto time = parse_time(text);
    if (!time) return refuse(field, "a date such as 2026-12-31 or 2026-12-31T23:59:59Z");
    return *time;
}

template <class T>
Result<void> put(std::optional<T>& field, Result<T> value) {
    if (!value) return fail(std::move(value).error());
    field = *std::move(value);
    return {};
}

template <class T>
Result<void> put(T& field, Result<T> value) {
    if (!value) return fail(std::move(value).error());
    field = *std::move(value);
    return {};
}

Result<bool> read_flag(const json::value& value, std::string_view field) {
    if (!value.is_bool()) return refuse(field, "true or false");
    return value.get_bool();
}

Result<void> read_field(Scope& scope, std::string_view name, const json::value& value) {
    if (name == "member") return put(scope.member, read_text(value, name));
    if (name == "app") return put(scope.app, read_text(value, name));
    if (name == "admin") return put(scope.admin, read_flag(value, name));
    if (name == "tiers") return put(scope.tiers, read_tiers(value));
    if (name == "models") return put(scope.models, read_texts(value, name));
    if (name == "lowest_class") return put(scope.lowest_class, read_class(value, name));
    if (name == "default_class") return put(scope.default_class, read_class(value, name));
    if (name == "declassify") return put(scope.declassify, read_class(value, name));
    if (name == "requests_per_minute")
        return put(scope.requests_per_minute, read_count(value, name));
    if (name == "tokens_per_minute") return put(scope.tokens_per_minute, read_count(value, name));
    if (name == "parallel_max") return put(scope.parallel_max, read_count(value, name));
    if (name == "budget_per_month") return put(scope.budget_per_month, read_money(value, name));
    if (name == "expires") return put(scope.expires, read_time(value, name));
    // A mistyped limit would be no limit at all.
    return refuse(name, "no such field; see the documentation of keys for those that exist");
}

}  // namespace

std::string to_text(const Scope& scope) {
    json::object object;
    object["member"] = scope.member;
    if (!scope.app.empty()) object["app"] = scope.app;
    object["admin"] = scope.admin;
    json::array tiers;
    for (const domain::Tier tier : domain::all_tiers) {
        if (scope.tiers.contains(tier)) tiers.emplace_back(domain::to_string(tier));
    }
    object["tiers"] = std::move(tiers);
    if (!scope.models.empty())
        object["models"] = json::array(scope.models.begin(), scope.models.end());
    object["lowest_class"] = to_string(scope.lowest_class);
    if (scope.default_class) object["default_class"] = to_string(*scope.default_class);
    if (scope.declassify) object["declassify"] = to_string(*scope.declassify);
    if (scope.requests_per_minute) object["requests_per_minute"] = *scope.requests_per_minute;
    if (scope.tokens_per_minute) object["tokens_per_minute"] = *scope.tokens_per_minute;
    if (scope.parallel_max) object["parallel_max"] = *scope.parallel_max;
    if (scope.budget_per_month) object["budget_per_month"] = to_string(*scope.budget_per_month);
    if (scope.expires) object["expires"] = store::to_text(*scope.expires);
    return molly::to_text(object);
}

Result<Scope> scope_from(std::string_view text) {
    TRY(const json::value value, parse_json(text));
    if (!value.is_object()) return fail(ErrorCode::invalid_request, "a scope is a JSON object");
    Scope scope;
    for (const auto& member : value.get_object()) {
        if (member.value().is_null()) continue;
        const std::string_view name(member.key().data(), member.key().size());
        TRY_DO(read_field(scope, name, member.value()));
    }
    return scope;
}

}  // namespace molly::members
