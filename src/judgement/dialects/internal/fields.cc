#include "dialects/internal/fields.h"

#include <cmath>

#include <fmt/format.h>

namespace molly::dialects {

std::string to_string(const Place& place) {
    std::string text = place.parent != nullptr ? to_string(*place.parent) : std::string();
    if (!place.name.empty()) {
        if (!text.empty()) text += '.';
        text += place.name;
    }
    if (place.index != Place::no_index) text += fmt::format("[{}]", place.index);
    return text;
}

void Faults::add(ErrorCode code, const Place& place, std::string_view what) {
    if (first_) return;
    std::string path = to_string(place);
    const std::string_view subject = path.empty() ? "the body" : std::string_view(path);
    first_ = Error(code, fmt::format("{} {}", subject, what))
                 .reason(code == ErrorCode::unsupported ? "unsupported_parameter" : "")
                 .param(std::move(path));
}

void Faults::invalid(const Place& place, std::string_view what) {
    add(ErrorCode::invalid_request, place, what);
}

void Faults::unsupported(const Place& place, std::string_view what) {
    add(ErrorCode::unsupported, place, what);
}

const json::value* Fields::find(std::string_view name) const {
    const json::value* value = object_.if_contains(name);
    return value == nullptr || value->is_null() ? nullptr : value;
}

std::optional<std::string_view> Fields::text(std::string_view name) const {
    const json::value* value = find(name);
    if (value == nullptr) return std::nullopt;
    if (const json::string* text = value->if_string()) return std::string_view(*text);
    invalid(name, "must be a string");
    return std::nullopt;
}

std::string_view Fields::required_text(std::string_view name) const {
    const std::string_view value = text_or_empty(name);
    if (value.empty()) invalid(name, "is required and must be a string that is not empty");
    return value;
}

bool Fields::flag(std::string_view name, bool otherwise) const {
    const json::value* value = find(name);
    if (value == nullptr) return otherwise;
    if (const bool* flag = value->if_bool()) return *flag;
    invalid(name, "must be true or false");
    return otherwise;
}

std::optional<float> Fields::number(std::string_view name, double low, double high) const {
    const json::value* value = find(name);
    if (value == nullptr) return std::nullopt;
    json::error_code error;
    const double number = value->to_number<double>(error);
    if (!error && number >= low && number <= high) return static_cast<float>(number);
    invalid(name, fmt::format("must be a number from {} to {}", low, high));
    return std::nullopt;
}

std::optional<std::int64_t> Fields::integer(std::string_view name) const {
    const json::value* value = find(name);
    if (value == nullptr) return std::nullopt;
    json::error_code error;
    const auto number = value->to_number<std::int64_t>(error);
    if (!error) return number;
    invalid(name, "must be a whole number of 64 bits");
    return std::nullopt;
}

std::optional<std::uint32_t> Fields::count(std::string_view name, std::uint32_t low,
                                           std::uint32_t high) const {
    const json::value* value = find(name);
    if (value == nullptr) return std::nullopt;
    json::error_code error;
    const auto number = value->to_number<std::int64_t>(error);
    if (!error && number >= low && number <= high) return static_cast<std::uint32_t>(number);
    invalid(name, fmt::format("must be a whole number from {} to {}", low, high));
    return std::nullopt;
}

const json::object* Fields::object(std::string_view name) const {
    const json::value* value = find(name);
    if (value == nullptr) return nullptr;
    if (value->is_object()) return &value->get_object();
    invalid(name, "must be an object");
    return nullptr;
}

const json::array* Fields::array(std::string_view name) const {
    const json::value* value = find(name);
    if (value == nullptr) return nullptr;
    if (value->is_array()) return &value->get_array();
    invalid(name, "must be an array");
    return nullptr;
}

}  // namespace molly::dialects
