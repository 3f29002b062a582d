#pragma once
// Tames the JSON Schema of a tool before llama.cpp turns it into a grammar. Pure.
#include <string>
#include <string_view>

#include "base/result.h"

namespace molly::engine {

/// The schema without what the conversion gets wrong or could be made to choke on: patterns (they
/// ignore JSON escapes), huge counts, references that lead nowhere, and shapes that are no schema.
/// What remains accepts a superset; every argument text is still valid JSON. An empty text becomes
/// an object without properties. Errors: invalid_request (not a JSON object, or beyond bounds).
Result<std::string> tame_tool_schema(std::string_view schema);

}  // namespace molly::engine
