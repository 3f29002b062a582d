#include "engine/internal/schema_alternatives.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>

namespace molly::engine {

bool requires_property(const json::object& node, std::string_view name) {
    const auto* required = node.if_contains("required");
    return required != nullptr && required->is_array() &&
           std::ranges::any_of(required->as_array(), [&](const auto& one) {
               return one.is_string() && one.as_string() == name;
           });
}

namespace {

const json::value& resolve(const json::value& schema, const json::value& root) {
    if (!schema.is_object()) return schema;
    const auto* reference = schema.as_object().if_contains("$ref");
    if (reference == nullptr || !reference->is_string() ||
        !reference->as_string().starts_with("#/")) {
        return schema;
    }
    boost::system::error_code error;
    const auto* target =
        root.find_pointer(std::string_view(reference->as_string()).substr(1), error);
    return target != nullptr && !error ? *target : schema;
}

/// The values that `schema` fixes itself to, by const or enum.
std::optional<std::set<std::string>> fixed_values(const json::value& schema) {
    if (!schema.is_object()) return std::nullopt;
    const json::object& node = schema.as_object();
    if (const auto* one = node.if_contains("const")) return std::set{to_text(*one)};
    const auto* list = node.if_contains("enum");
    if (list == nullptr || !list->is_array()) return std::nullopt;
    std::set<std::string> values;
    for (const auto& value : list->as_array())
        values.insert(to_text(value));
    return values;
}

bool disjoint(const std::set<std::string>& one, const std::set<std::string>& other) {
    return std::ranges::none_of(one, [&](const auto& value) { return other.contains(value); });
}

/// Objects differ when both must have a property that is fixed to other values.
bool told_apart_by_property(const json::object& a, const json::object& b) {
    const auto* properties_a = a.if_contains("properties");
    const auto* properties_b = b.if_contains("properties");
    if (properties_a == nullptr || properties_b == nullptr || !properties_a->is_object() ||
        !properties_b->is_object()) {
        return false;
    }
    for (const auto& entry : properties_a->as_object()) {
        const auto* other = properties_b->as_object().if_contains(entry.key());
        if (other == nullptr || !requires_property(a, entry.key()) ||
            !requires_property(b, entry.key())) {
            continue;
        }
        const auto fixed_a = fixed_values(entry.value());
        const auto fixed_b = fixed_values(*other);
        if (fixed_a && fixed_b && disjoint(*fixed_a, *fixed_b)) return true;
    }
    return false;
}

bool differ(const json::value& a, const json::value& b) {
    if (!a.is_object() || !b.is_object()) return false;
    const auto fixed_a = fixed_values(a);
    const auto fixed_b = fixed_values(b);
    if (fixed_a && fixed_b) return disjoint(*fixed_a, *fixed_b);
    const auto* type_a = a.as_object().if_contains("type");
    const auto* type_b = b.as_object().if_contains("type");
    if (type_a == nullptr || type_b == nullptr || !type_a->is_string() || !type_b->is_string()) {
        return false;
    }
    const std::set<std::string_view> types = {type_a->as_string(), type_b->as_string()};
    const bool numbers = types.contains("integer") && types.contains("number");
    if (types.size() == 2) return !numbers;
    return types.contains("object") && told_apart_by_property(a.as_object(), b.as_object());
}

}  // namespace

bool alternatives_differ(const json::array& schemas, const json::value& root) {
    constexpr std::size_t compared_max = 100;
    if (schemas.size() > compared_max) return false;
    for (std::size_t i = 0; i < schemas.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) {
            if (!differ(resolve(schemas[i], root), resolve(schemas[j], root))) return false;
        }
    }
    return true;
}

}  // namespace molly::engine
