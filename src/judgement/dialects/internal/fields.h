#pragma once
// Reads the fields of a foreign JSON object and names the one that is wrong. Values.
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "base/result.h"

namespace molly::dialects {

/// Where a value lies in the body; rendered (`messages[2].content`) only when something is wrong.
struct Place {
    static constexpr std::size_t no_index = static_cast<std::size_t>(-1);

    const Place* parent = nullptr;
    std::string_view name;
    std::size_t index = no_index;
};
std::string to_string(const Place& place);

/// The first fault of a body. What was read before it does not count.
class Faults {
public:
    /// `what` says what the value must be: "must be a string".
    void invalid(const Place& place, std::string_view what);
    /// `what` says what cannot be done, and the way out.
    void unsupported(const Place& place, std::string_view what);
    bool any() const noexcept { return first_.has_value(); }
    /// Call only when there is one.
    Error take() { return *std::move(first_); }

private:
    void add(ErrorCode code, const Place& place, std::string_view what);
    std::optional<Error> first_;
};

/// The fields of one object; null counts as absent. Object, place and faults must outlive it.
class Fields {
public:
    Fields(const json::object& object, const Place& place, Faults& faults)
        : object_(object), place_(place), faults_(faults) {}

    const json::value* find(std::string_view name) const;
    bool has(std::string_view name) const { return find(name) != nullptr; }

    std::optional<std::string_view> text(std::string_view name) const;
    /// The text, or empty.
    std::string_view text_or_empty(std::string_view name) const {
        return text(name).value_or(std::string_view());
    }
    /// A fault when absent or empty.
    std::string_view required_text(std::string_view name) const;
    bool flag(std::string_view name, bool otherwise = false) const;
    std::optional<float> number(std::string_view name, double low, double high) const;
    std::optional<std::int64_t> integer(std::string_view name) const;
    std::optional<std::uint32_t> count(
        std::string_view name, std::uint32_t low = 0,
        std::uint32_t high = std::numeric_limits<std::int32_t>::max()) const;
    const json::object* object(std::string_view name) const;
    const json::array* array(std::string_view name) const;

    /// The place of a field, for faults and for deeper objects.
    Place at(std::string_view name) const noexcept { return {.parent = &place_, .name = name}; }
    void invalid(std::string_view name, std::string_view what) const {
        faults_.invalid(at(name), what);
    }
    void unsupported(std::string_view name, std::string_view what) const {
        faults_.unsupported(at(name), what);
    }
    const json::object& all() const noexcept { return object_; }
    const Place& place() const noexcept { return place_; }
    Faults& faults() const noexcept { return faults_; }

private:
    const json::object& object_;
    const Place& place_;
    Faults& faults_;
};

/// Calls `each(fields)` for every object of an array field; anything else in it is a fault.
template <class Each>
void for_each_object(const Fields& fields, std::string_view name, Each each) {
    const json::array* array = fields.array(name);
    if (array == nullptr) return;
    const Place place = fields.at(name);
    for (std::size_t i = 0; i < array->size(); ++i) {
        const Place element = {.parent = &place, .name = {}, .index = i};
        const json::object* object = (*array)[i].if_object();
        if (object == nullptr) return fields.faults().invalid(element, "must be an object");
        each(Fields(*object, element, fields.faults()));
    }
}

/// Calls `each(fields)` when the field is there; anything but an object is a fault.
template <class Each>
void with_object(const Fields& fields, std::string_view name, Each each) {
    const json::object* object = fields.object(name);
    if (object == nullptr) return;
    const Place place = fields.at(name);
    each(Fields(*object, place, fields.faults()));
}

}  // namespace molly::dialects
