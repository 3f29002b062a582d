#pragma once
// Fields of run.json.
#include <string>
#include <type_traits>

#include "base/json.h"

namespace molly::train {

/// False when the value is missing or of another kind.
template <class Field>
bool read_field(const json::object& in, const char* key, Field& out) {
    const json::value* value = in.if_contains(key);
    if (value == nullptr) return false;
    if constexpr (std::is_same_v<Field, std::string>) {
        if (value->is_string()) out = std::string(value->get_string());
        return value->is_string();
    } else {
        if (!value->is_number()) return false;
        boost::system::error_code error;
        if constexpr (std::is_floating_point_v<Field>) {
            out = static_cast<Field>(value->to_number<double>(error));
        } else {
            out = value->to_number<Field>(error);
        }
        return !error;
    }
}

}  // namespace molly::train
