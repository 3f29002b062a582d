#pragma once
// What the OpenAI faces share. Pure.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dialects/dialects.h"
#include "dialects/internal/fields.h"
#include "dialects/internal/json_text.h"

namespace molly::dialects {

/// stream, stream_options, user, metadata, molly; refuses n above 1 and logit_bias.
void decode_openai_common(const Fields& fields, Decoded& decoded);
/// `none`, `auto` or `required`.
void decode_choice_word(const Fields& fields, std::string_view word, domain::ToolChoice& choice);
/// name, schema and strict of a JSON schema format.
void decode_json_schema(const Fields& schema, domain::OutputFormat& format);
/// `text` or `json_object`.
void decode_plain_format(const Fields& asked, std::string_view type, domain::OutputFormat& format);

/// The `usage` object of chat completions and completions.
void append_usage(JsonText& json, const domain::Usage& usage);
/// `{"content":[...],"refusal":null}`, or null when there are none.
void append_logprobs(JsonText& json, const std::vector<domain::TokenLogprob>& logprobs);
/// One call as `{"id","type":"function","function":{...}}`.
void append_tool_call(JsonText& json, const domain::ToolCall& call);
/// The `error` object.
std::string openai_error_body(const Error& error);

inline constexpr std::string_view sse_done = "data: [DONE]\n\n";
inline constexpr std::string_view sse_keep_alive = ": keep-alive\n\n";

}  // namespace molly::dialects
