#include "dialects/internal/openai.h"

#include "dialects/internal/parts.h"

namespace molly::dialects {

using domain::OutputFormat;
using domain::ToolChoice;

void decode_openai_common(const Fields& fields, Decoded& decoded) {
    domain::Request& request = decoded.request;
    request.dialect = "openai";
    request.stream = fields.flag("stream");
    with_object(fields, "stream_options", [&decoded](const Fields& options) {
        decoded.usage_in_stream = options.flag("include_usage");
    });
    request.user = fields.text_or_empty("user");
    decode_metadata(fields, request);
    decode_extensions(fields, request);
    if (fields.count("n", 1).value_or(1) > 1)
        fields.unsupported("n", "must be 1; send one request for each answer");
    if (const json::object* bias = fields.object("logit_bias"); bias != nullptr && !bias->empty())
        fields.unsupported("logit_bias", "is not possible: targets differ in their tokens");
}

void decode_choice_word(const Fields& fields, std::string_view word, ToolChoice& choice) {
    if (word == "none") {
        choice.kind = ToolChoice::Kind::none;
    } else if (word == "required") {
        choice.kind = ToolChoice::Kind::required;
    } else if (word != "auto") {
        fields.invalid("tool_choice", "must be none, auto, required or a named function");
    }
}

void decode_json_schema(const Fields& schema, OutputFormat& format) {
    format.kind = OutputFormat::Kind::json_schema;
    format.name = schema.text_or_empty("name");
    format.strict = schema.flag("strict");
    if (schema.object("schema") == nullptr) return schema.invalid("schema", "is required");
    format.schema = json_of(schema, "schema");
}

void decode_plain_format(const Fields& asked, std::string_view type, OutputFormat& format) {
    if (type == "json_object") {
        format.kind = OutputFormat::Kind::json_object;
    } else if (type != "text") {
        asked.unsupported("type", "must be text, json_object or json_schema");
    }
}

void append_usage(JsonText& json, const domain::Usage& usage) {
    json.open()
        .field("prompt_tokens", usage.prompt_tokens)
        .field("completion_tokens", usage.answer_tokens)
        .field("total_tokens", std::uint64_t{usage.prompt_tokens} + usage.answer_tokens)
        .key("prompt_tokens_details")
        .open()
        .field("cached_tokens", usage.cached_tokens)
        .field("audio_tokens", 0)
        .close()
        .key("completion_tokens_details")
        .open()
        .field("reasoning_tokens", usage.reasoning_tokens)
        .field("audio_tokens", 0)
        .field("accepted_prediction_tokens", 0)
        .field("rejected_prediction_tokens", 0)
        .close()
        .close();
}

void append_logprobs(JsonText& json, const std::vector<domain::TokenLogprob>& logprobs) {
    if (logprobs.empty()) {
        json.null();
        return;
    }
    json.open().key("content").open_array();
    for (const domain::TokenLogprob& token : logprobs)
        append_token(json, token);
    json.close_array().null_field("refusal").close();
}

void append_tool_call(JsonText& json, const domain::ToolCall& call) {
    json.open()
        .field("id", call.id)
        .field("type", "function")
        .key("function")
        .open()
        .field("name", call.name)
        .field("arguments", call.arguments.text())
        .close()
        .close();
}

}  // namespace molly::dialects
