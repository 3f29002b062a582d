#pragma once
// Strict, bounded JSON: what enters Molly is parsed here and nowhere else. Pure; safe from any
// thread.
#include <cstddef>
#include <string>
#include <string_view>

#include <boost/json/value.hpp>

#include "base/result.h"

namespace molly {

namespace json = boost::json;

struct JsonLimits {
    std::size_t bytes_max = 64U << 20U;  ///< bytes; more is too_large
    std::size_t depth_max = 64;          ///< nested arrays and objects; more is invalid_request
};

/// Parses one document. A byte-order mark is tolerated; invalid UTF-8, lone surrogates, NUL inside
/// a string, numbers out of range, trailing text and any repeated key are refused (RFC 8259; a
/// repeated `model` would bypass policy). Errors: invalid_request with the byte offset; too_large.
/// The value lives in `storage`, which it keeps alive unless it is a plain resource of the caller.
Result<json::value> parse_json(std::string_view text, const JsonLimits& limits = {},
                               json::storage_ptr storage = {});

/// Appends `text` as a JSON string, quotes included. Invalid UTF-8 bytes become U+FFFD.
void append_json_string(std::string& out, std::string_view text);

/// Appends a value as compact JSON: keys in their order, numbers in their shortest exact form.
void append_json(std::string& out, const json::value& value);

/// Compact text of a value.
std::string to_text(const json::value& value);

}  // namespace molly
