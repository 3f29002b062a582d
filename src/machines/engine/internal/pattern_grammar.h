#pragma once
// From the `pattern` of a JSON Schema to a grammar of JSON string contents. Pure.
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace molly::engine {

/// Inclusive ranges of code points.
using CharacterRanges = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

/// A GBNF expression for one character of a JSON string whose decoded value is in `ranges`: raw
/// where JSON allows it, escaped where it must be. Empty when no such character can be written.
std::string json_character(const CharacterRanges& ranges);

/// A GBNF expression for what stands between the quotes of a JSON string whose decoded text matches
/// `pattern` (ECMA 262, the part without look-around, back references and property classes). It may
/// match fewer texts than the pattern. Errors: invalid_request, naming the construct.
Result<std::string> pattern_grammar(std::string_view pattern);

}  // namespace molly::engine
