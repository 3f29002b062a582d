#include "engine/internal/json_grammar.h"

#include <array>

#include <fmt/format.h>

namespace molly::engine {
namespace {

struct Format {
    std::string_view name;
    std::string_view grammar;  // between the quotes
};

// Days end at 28, so that every date exists.
constexpr std::array formats = {
    Format{"date",
           R"([0-9]{4} "-" ( "0" [1-9] | "1" [0-2] ) "-" ( "0" [1-9] | "1" [0-9] | "2" [0-8] ))"},
    Format{"time",
           R"(( [01] [0-9] | "2" [0-3] ) ":" [0-5] [0-9] ":" [0-5] [0-9] ( "." [0-9]{1,6} )? "Z")"},
    Format{
        "date-time",
        R"([0-9]{4} "-" ( "0" [1-9] | "1" [0-2] ) "-" ( "0" [1-9] | "1" [0-9] | "2" [0-8] ) "T" ( [01] [0-9] | "2" [0-3] ) ":" [0-5] [0-9] ":" [0-5] [0-9] ( "." [0-9]{1,6} )? "Z")"},
    Format{
        "uuid",
        R"([0-9a-f]{8} "-" [0-9a-f]{4} "-" [1-5] [0-9a-f]{3} "-" [89ab] [0-9a-f]{3} "-" [0-9a-f]{12})"},
};

// A lone surrogate is written as an escape but is no text, so \uD800 to \uDFFF are left out. Space
// between tokens is optional and bounded: a model that likes it would never come to an end.
constexpr std::string_view object_grammar = R"(root ::= object
value ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" space ( member ( "," space member )* )? "}"
member ::= string space ":" space value space
array ::= "[" space ( value space ( "," space value space )* )? "]"
string ::= "\"" char* "\""
char ::= [^"\\\x00-\x1F\x7F] | "\\" ( ["\\/bfnrt] | "u" ( [0-9a-cA-Ce-fE-F] hex hex hex | [dD] [0-7] hex hex ) )
hex ::= [0-9a-fA-F]
number ::= "-"? integral ( "." [0-9]{1,16} )? ( [eE] [-+]? [0-9]{1,2} )?
integral ::= "0" | [1-9] [0-9]{0,14}
space ::= ( " " | "\n" [ \t]{0,20} )?
)";

}  // namespace

const std::string_view json_object_grammar = object_grammar;
const std::string_view json_rules = object_grammar.substr(object_grammar.find('\n') + 1);

std::string_view json_format(std::string_view name) {
    for (const auto& format : formats) {
        if (format.name == name) return format.grammar;
    }
    return {};
}

std::string gbnf_literal(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (static_cast<unsigned char>(c) < 0x20) {
            out += fmt::format("\\x{:02X}", static_cast<unsigned>(c));
        } else {
            out += c;
        }
    }
    return out + "\"";
}

}  // namespace molly::engine
