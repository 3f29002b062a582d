#pragma once
// The rules of JSON itself, in GBNF. Pure.
#include <string>
#include <string_view>

namespace molly::engine {

/// Any JSON object.
extern const std::string_view json_object_grammar;

/// The rules `value`, `object`, `array`, `string`, `char`, `number` and `space`, without a root.
extern const std::string_view json_rules;

/// What stands between the quotes of a text of this `format` (JSON Schema); empty when the format
/// is not one that a grammar here knows.
std::string_view json_format(std::string_view name);

/// GBNF that reads exactly `text`.
std::string gbnf_literal(std::string_view text);

}  // namespace molly::engine
