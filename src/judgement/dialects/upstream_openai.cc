// A domain Request as an OpenAI request to an upstream.
#include "dialects/internal/openai.h"
#include "dialects/internal/parts.h"
#include "dialects/internal/upstream.h"

namespace molly::dialects {
namespace {

using domain::Message;
using domain::OutputFormat;
using domain::Part;
using domain::Request;
using domain::Role;
using domain::ToolChoice;

Result<void> append_part(JsonText& json, const Part& part) {
    switch (part.kind) {
        case Part::Kind::text:
            json.open().field("type", "text").field("text", part.text.text()).close();
            return {};
        case Part::Kind::image:
            json.open().field("type", "image_url").key("image_url").open();
            json.field("url", url_of(part)).close().close();
            return {};
        case Part::Kind::audio: {
            if (part.is_url)
                return fail(ErrorCode::unsupported, "this target takes audio as bytes only");
            const std::string_view media = part.media_type;
            json.open().field("type", "input_audio").key("input_audio").open();
            json.field("data", part.text.text());
            json.field("format", media.substr(media.find('/') + 1)).close().close();
            return {};
        }
        case Part::Kind::file:
            json.open().field("type", "file").key("file").open();
            json.field("file_data", url_of(part)).close().close();
            return {};
    }
    return fail(ErrorCode::internal, "a part of a kind that nobody declared");
}

Result<void> append_content(JsonText& json, const Message& message) {
    json.key("content");
    if (message.parts.empty()) {
        if (message.role == Role::assistant) {
            json.null();
        } else {
            json.string("");
        }
        return {};
    }
    const bool one_text = message.parts.size() == 1 && message.parts[0].kind == Part::Kind::text;
    if (one_text) {
        json.string(message.parts[0].text.text());
        return {};
    }
    json.open_array();
    for (const Part& part : message.parts)
        TRY_DO(append_part(json, part));
    json.close_array();
    return {};
}

Result<void> append_message(JsonText& json, const Message& message) {
    json.open().field("role", to_string(message.role));
    TRY_DO(append_content(json, message));
    if (!message.name.empty()) json.field("name", message.name);
    if (!message.reasoning.empty()) json.field("reasoning_content", message.reasoning.text());
    if (!message.tool_calls.empty()) {
        json.key("tool_calls").open_array();
        for (const domain::ToolCall& call : message.tool_calls)
            append_tool_call(json, call);
        json.close_array();
    }
    if (message.role == Role::tool) json.field("tool_call_id", message.tool_call_id);
    json.close();
    return {};
}

void append_tools(JsonText& json, const Request& request) {
    if (request.tools.empty()) return;
    json.key("tools").open_array();
    for (const domain::Tool& tool : request.tools) {
        json.open().field("type", "function").key("function").open().field("name", tool.name);
        if (!tool.description.empty()) json.field("description", tool.description.text());
        if (!tool.parameters.empty()) json.raw_field("parameters", tool.parameters.text());
        if (tool.strict) json.field("strict", true);
        json.close().close();
    }
    json.close_array();
    if (!request.tool_choice.parallel) json.field("parallel_tool_calls", false);
    switch (request.tool_choice.kind) {
        case ToolChoice::Kind::automatic:
            return;
        case ToolChoice::Kind::none:
            json.field("tool_choice", "none");
            return;
        case ToolChoice::Kind::required:
            json.field("tool_choice", "required");
            return;
        case ToolChoice::Kind::named:
            json.key("tool_choice").open().field("type", "function").key("function").open();
            json.field("name", request.tool_choice.name).close().close();
            return;
    }
}

Result<void> append_format(JsonText& json, const OutputFormat& format) {
    switch (format.kind) {
        case OutputFormat::Kind::text:
            return {};
        case OutputFormat::Kind::json_object:
            json.key("response_format").open().field("type", "json_object").close();
            return {};
        case OutputFormat::Kind::json_schema:
            json.key("response_format").open().field("type", "json_schema").key("json_schema");
            json.open().field("name", format.name.empty() ? "answer" : format.name);
            if (format.strict) json.field("strict", true);
            json.raw_field("schema", format.schema.text()).close().close();
            return {};
        case OutputFormat::Kind::grammar:
            return fail(ErrorCode::unsupported, "an OpenAI target takes no grammar");
    }
    return fail(ErrorCode::internal, "a format that nobody declared");
}

template <class Value>
void append_optional(JsonText& json, std::string_view name, const std::optional<Value>& value) {
    if (value) json.field(name, *value);
}

void append_sampling(JsonText& json, const domain::Sampling& sampling) {
    append_optional(json, "temperature", sampling.temperature);
    append_optional(json, "top_p", sampling.top_p);
    append_optional(json, "min_p", sampling.min_p);
    append_optional(json, "top_k", sampling.top_k);
    append_optional(json, "frequency_penalty", sampling.frequency_penalty);
    append_optional(json, "presence_penalty", sampling.presence_penalty);
    append_optional(json, "repeat_penalty", sampling.repeat_penalty);
    if (sampling.seed) json.field("seed", static_cast<std::int64_t>(*sampling.seed));
    if (sampling.stop.empty()) return;
    json.key("stop").open_array();
    for (const std::string& stop : sampling.stop)
        json.string(stop);
    json.close_array();
}

void append_stream(JsonText& json, bool stream) {
    if (!stream) return;
    // Usage in a stream comes only when asked for; the receipt needs it whoever asked.
    json.field("stream", true).key("stream_options").open().field("include_usage", true).close();
}

Result<void> append_chat(JsonText& json, const Request& request) {
    json.key("messages").open_array();
    for (const Message& message : request.messages)
        TRY_DO(append_message(json, message));
    json.close_array();
    append_tools(json, request);
    TRY_DO(append_format(json, request.format));
    append_sampling(json, request.sampling);
    // The older name is the one that every compatible server knows.
    append_optional(json, "max_tokens", request.sampling.answer_tokens_max);
    append_optional(json, "reasoning_effort", request.sampling.reasoning_effort);
    if (request.sampling.logprobs) {
        json.field("logprobs", true);
        if (request.sampling.top_logprobs > 0)
            json.field("top_logprobs", request.sampling.top_logprobs);
    }
    append_stream(json, request.stream);
    return {};
}

void append_completion(JsonText& json, const Request& request) {
    json.field("prompt", request.prompt.text());
    if (!request.suffix.empty()) json.field("suffix", request.suffix.text());
    append_sampling(json, request.sampling);
    append_optional(json, "max_tokens", request.sampling.answer_tokens_max);
    if (request.sampling.logprobs) json.field("logprobs", request.sampling.top_logprobs);
    append_stream(json, request.stream);
}

void append_embedding(JsonText& json, const Request& request) {
    json.key("input").open_array();
    for (const domain::Content& input : request.inputs)
        json.string(input.text());
    json.close_array().field("encoding_format", "float");
    append_optional(json, "dimensions", request.dimensions);
}

}  // namespace

Result<UpstreamRequest> encode_upstream_openai(const Request& request, const std::string& model) {
    UpstreamRequest upstream;
    JsonText json(upstream.body);
    json.open().field("model", model);
    switch (request.operation) {
        case domain::Operation::chat:
            upstream.path = "/chat/completions";
            TRY_DO(append_chat(json, request));
            break;
        case domain::Operation::complete:
            upstream.path = "/completions";
            append_completion(json, request);
            break;
        case domain::Operation::embed:
            upstream.path = "/embeddings";
            append_embedding(json, request);
            break;
    }
    json.close();
    return upstream;
}

}  // namespace molly::dialects
