#pragma once
// From a JSON Schema to a grammar whose every text is a valid document. Pure.
#include <string>
#include <string_view>

#include "base/result.h"

namespace molly::engine {

/// GBNF for documents that satisfy `schema`. It may accept fewer than the schema does (objects have
/// only the properties that are named, in that order), never others. With `strict`, a keyword that
/// it cannot keep is an error; without, such a keyword is ignored. Patterns are matched against the
/// decoded text. Errors: invalid_request, naming the keyword and where it stands.
Result<std::string> schema_grammar(std::string_view schema, bool strict);

}  // namespace molly::engine
