// A domain Request as an Ollama request to an upstream.
#include <algorithm>

#include "dialects/internal/json_text.h"
#include "dialects/internal/object_text.h"
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

std::unexpected<Error> unsupported(std::string_view what) {
    return fail(Error(ErrorCode::unsupported, "an Ollama target cannot take " + std::string(what))
                    .reason("unsupported_by_target"));
}

Result<void> append_images(JsonText& json, const Message& message) {
    bool open = false;
    for (const Part& part : message.parts) {
        if (part.kind == Part::Kind::text) continue;
        if (part.kind != Part::Kind::image) return unsupported("audio or files");
        if (part.is_url) return unsupported("images by address; send their bytes");
        if (!open) json.key("images").open_array();
        open = true;
        json.string(part.text.text());
    }
    if (open) json.close_array();
    return {};
}

/// The name of the tool whose call `id` is; the dialect tells results apart by it.
std::string_view name_of_call(const Request& request, std::string_view id) {
    for (const Message& message : request.messages) {
        for (const domain::ToolCall& call : message.tool_calls) {
            if (call.id == id) return call.name;
        }
    }
    return {};
}

Result<void> append_message(JsonText& json, const Request& request, const Message& message) {
    json.open().field("role", to_string(message.role)).field("content", text_of(message));
    if (!message.reasoning.empty()) json.field("thinking", message.reasoning.text());
    TRY_DO(append_images(json, message));
    if (!message.tool_calls.empty()) {
        json.key("tool_calls").open_array();
        for (const domain::ToolCall& call : message.tool_calls) {
            json.open().field("id", call.id).key("function").open().field("name", call.name);
            json.raw_field("arguments", object_text(call.arguments.text())).close().close();
        }
        json.close_array();
    }
    if (message.role == Role::tool) {
        const std::string_view name = name_of_call(request, message.tool_call_id);
        if (!name.empty()) json.field("tool_name", name);
        json.field("tool_call_id", message.tool_call_id);
    }
    json.close();
    return {};
}

Result<void> append_tools(JsonText& json, const Request& request) {
    const ToolChoice::Kind choice = request.tool_choice.kind;
    if (request.tools.empty() || choice == ToolChoice::Kind::none) return {};
    if (choice != ToolChoice::Kind::automatic) return unsupported("a forced tool call");
    json.key("tools").open_array();
    for (const domain::Tool& tool : request.tools) {
        json.open().field("type", "function").key("function").open().field("name", tool.name);
        json.field("description", tool.description.text());
        json.raw_field("parameters", tool.parameters.empty()
                                         ? R"({"type":"object","properties":{}})"
                                         : tool.parameters.text());
        json.close().close();
    }
    json.close_array();
    return {};
}

Result<void> append_format(JsonText& json, const OutputFormat& format) {
    switch (format.kind) {
        case OutputFormat::Kind::text:
            return {};
        case OutputFormat::Kind::json_object:
            json.field("format", "json");
            return {};
        case OutputFormat::Kind::json_schema:
            json.raw_field("format", format.schema.text());
            return {};
        case OutputFormat::Kind::grammar:
            return unsupported("a grammar");
    }
    return unsupported("this format");
}

template <class Value>
void append_optional(JsonText& json, std::string_view name, const std::optional<Value>& value) {
    if (value) json.field(name, *value);
}

void append_options(JsonText& json, const domain::Sampling& sampling) {
    json.key("options").open();
    append_optional(json, "num_predict", sampling.answer_tokens_max);
    append_optional(json, "temperature", sampling.temperature);
    append_optional(json, "top_p", sampling.top_p);
    append_optional(json, "min_p", sampling.min_p);
    append_optional(json, "top_k", sampling.top_k);
    append_optional(json, "frequency_penalty", sampling.frequency_penalty);
    append_optional(json, "presence_penalty", sampling.presence_penalty);
    append_optional(json, "repeat_penalty", sampling.repeat_penalty);
    if (sampling.seed) json.field("seed", static_cast<std::int64_t>(*sampling.seed));
    if (!sampling.stop.empty()) {
        json.key("stop").open_array();
        for (const std::string& stop : sampling.stop)
            json.string(stop);
        json.close_array();
    }
    json.close();
}

void append_answer_wishes(JsonText& json, const Request& request) {
    const domain::Sampling& sampling = request.sampling;
    append_options(json, sampling);
    if (sampling.logprobs) {
        json.field("logprobs", true);
        if (sampling.top_logprobs > 0) json.field("top_logprobs", sampling.top_logprobs);
    }
    if (sampling.reasoning_effort == "none") {
        json.field("think", false);
    } else if (sampling.reasoning_effort) {
        json.field("think", *sampling.reasoning_effort);
    }
    json.field("stream", request.stream);
}

Result<void> append_chat(JsonText& json, const Request& request) {
    json.key("messages").open_array();
    for (const Message& message : request.messages)
        TRY_DO(append_message(json, request, message));
    json.close_array();
    TRY_DO(append_tools(json, request));
    TRY_DO(append_format(json, request.format));
    append_answer_wishes(json, request);
    return {};
}

Result<void> append_generate(JsonText& json, const Request& request) {
    json.field("prompt", request.prompt.text());
    if (request.suffix.empty()) {
        json.field("raw", true);
    } else {
        json.field("suffix", request.suffix.text());
    }
    append_answer_wishes(json, request);
    return {};
}

void append_embed(JsonText& json, const Request& request) {
    json.key("input").open_array();
    for (const domain::Content& input : request.inputs)
        json.string(input.text());
    json.close_array().field("truncate", request.truncate);
    append_optional(json, "dimensions", request.dimensions);
}

}  // namespace

Result<UpstreamRequest> encode_upstream_ollama(const Request& request, const std::string& model) {
    UpstreamRequest upstream;
    JsonText json(upstream.body);
    json.open().field("model", model);
    switch (request.operation) {
        case domain::Operation::chat:
            upstream.path = "/api/chat";
            TRY_DO(append_chat(json, request));
            break;
        case domain::Operation::complete:
            upstream.path = "/api/generate";
            TRY_DO(append_generate(json, request));
            break;
        case domain::Operation::embed:
            upstream.path = "/api/embed";
            append_embed(json, request);
            break;
    }
    json.close();
    return upstream;
}

}  // namespace molly::dialects
