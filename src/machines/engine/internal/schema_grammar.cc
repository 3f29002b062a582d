#include "engine/internal/schema_grammar.h"

namespace molly::engine {

// A lone surrogate is written as an escape but is no text, so \uD800 to \uDFFF are left out. Space
// between tokens is optional and bounded: a model that likes it would never come to an end.
const std::string_view json_object_grammar = R"(root ::= object
value ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" space ( member ( "," space member )* )? "}"
member ::= string ":" space value space
array ::= "[" space ( value space ( "," space value space )* )? "]"
string ::= "\"" char* "\""
char ::= [^"\\\x00-\x1F\x7F] | "\\" ( ["\\/bfnrt] | "u" ( [0-9a-cA-Ce-fE-F] hex hex hex | [dD] [0-7] hex hex ) )
hex ::= [0-9a-fA-F]
number ::= "-"? integral ( "." [0-9]{1,16} )? ( [eE] [-+]? [0-9]{1,2} )?
integral ::= "0" | [1-9] [0-9]{0,15}
space ::= ( " " | "\n" [ \t]{0,20} )?
)";

Result<std::string> schema_grammar(std::string_view /*schema*/, bool /*strict*/) {
    return fail(ErrorCode::unsupported,
                "the local model does not take a JSON schema yet; use json_object");
}

}  // namespace molly::engine
