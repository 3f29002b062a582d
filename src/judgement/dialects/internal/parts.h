#pragma once
// What several faces decode alike. Pure; faults are noted in the fields' Faults.
#include <string>
#include <string_view>
#include <vector>

#include "dialects/dialects.h"
#include "dialects/internal/fields.h"
#include "dialects/internal/json_text.h"

namespace molly::dialects {

inline constexpr std::size_t stops_max = 16;

/// The `molly` object of any dialect. An unknown key in it is a fault: a mistyped constraint that
/// nobody enforces would be worse than an error.
void decode_extensions(const Fields& fields, domain::Request& request);

/// `"molly":{"caveat","prefix","explain"}`, where there is something to say.
/// The answer's own caveat stands before the envelope's.
void append_extensions(JsonText& json, const Envelope& envelope,
                       const domain::Response& response = {});

/// A string, or an array of strings; empty ones are ignored.
void decode_stop(const Fields& fields, std::string_view name, std::vector<std::string>& stop);

/// `data:image/png;base64,...` becomes bytes with a media type, anything else a URL.
domain::Part part_of_url(domain::Part::Kind kind, std::string_view url);
/// The reverse of part_of_url.
std::string url_of(const domain::Part& part);
domain::Part text_part(std::string_view text);
domain::Part base64_part(domain::Part::Kind kind, std::string_view bytes,
                         std::string_view media_type);

/// Reads temperature, top_p and the like where all faces name them alike.
void decode_penalties(const Fields& fields, domain::Sampling& sampling);

/// A map of strings.
void decode_metadata(const Fields& fields, domain::Request& request);

/// A function tool: name, description, parameters (under `schema_name`), strict.
void decode_function(const Fields& fields, std::string_view schema_name, domain::Request& request);

/// `input` of an embedding request: one text or several.
void decode_inputs(const Fields& fields, domain::Request& request);

/// Value of `name` as JSON text; empty when absent.
domain::Content json_of(const Fields& fields, std::string_view name);

/// `{"token","logprob","bytes","top_logprobs"}`.
void append_token(JsonText& json, const domain::TokenLogprob& token);

/// Seconds since the epoch.
std::int64_t unix_seconds(WallTime time) noexcept;

}  // namespace molly::dialects
