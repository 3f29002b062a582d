// A domain Request as an Anthropic request to an upstream.
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

constexpr std::uint32_t answer_tokens_default = 4096;  // the dialect insists on a maximum

std::unexpected<Error> unsupported(std::string_view what) {
    return fail(
        Error(ErrorCode::unsupported, "an Anthropic target cannot take " + std::string(what))
            .reason("unsupported_by_target"));
}

Result<void> append_part(JsonText& json, const Part& part) {
    std::string_view type = "document";
    switch (part.kind) {
        case Part::Kind::text:
            json.open().field("type", "text").field("text", part.text.text()).close();
            return {};
        case Part::Kind::audio:
            return unsupported("audio");
        case Part::Kind::image:
            type = "image";
            break;
        case Part::Kind::file:
            break;
    }
    json.open().field("type", type).key("source").open();
    if (part.is_url) {
        json.field("type", "url").field("url", part.text.text());
    } else {
        json.field("type", "base64").field("media_type", part.media_type);
        json.field("data", part.text.text());
    }
    json.close().close();
    return {};
}

Result<void> append_parts(JsonText& json, const std::vector<Part>& parts) {
    for (const Part& part : parts)
        TRY_DO(append_part(json, part));
    return {};
}

Result<void> append_tool_result(JsonText& json, const Message& message) {
    json.open().field("type", "tool_result").field("tool_use_id", message.tool_call_id);
    if (message.tool_failed) json.field("is_error", true);
    json.key("content").open_array();
    TRY_DO(append_parts(json, message.parts));
    json.close_array().close();
    return {};
}

/// A turn is every message up to the next change of side: tool results are the user's side there.
/// The reasoning of earlier turns stays out: it would be refused without its signature.
Result<void> append_blocks(JsonText& json, const Message& message) {
    if (message.role == Role::tool) return append_tool_result(json, message);
    TRY_DO(append_parts(json, message.parts));
    for (const domain::ToolCall& call : message.tool_calls) {
        const std::string& arguments = call.arguments.text();
        if (!arguments.empty() && !is_object_text(arguments)) {
            return fail(Error(ErrorCode::invalid_request,
                              "the arguments of an earlier tool call are no JSON object")
                            .reason("tool_arguments"));
        }
        json.open().field("type", "tool_use").field("id", call.id).field("name", call.name);
        json.raw_field("input", arguments.empty() ? "{}" : arguments).close();
    }
    return {};
}

bool has_blocks(const Message& message) {
    return message.role == Role::tool || !message.parts.empty() || !message.tool_calls.empty();
}

Result<void> append_messages(JsonText& json, const Request& request) {
    json.key("messages").open_array();
    std::string_view side;
    for (const Message& message : request.messages) {
        if (message.role == Role::system || !has_blocks(message)) continue;
        const std::string_view now = message.role == Role::assistant ? "assistant" : "user";
        if (now != side) {
            if (!side.empty()) json.close_array().close();
            json.open().field("role", now).key("content").open_array();
            side = now;
        }
        TRY_DO(append_blocks(json, message));
    }
    if (!side.empty()) json.close_array().close();
    json.close_array();
    return {};
}

Result<void> append_system(JsonText& json, const Request& request) {
    const auto is_system = [](const Message& message) { return message.role == Role::system; };
    if (std::none_of(request.messages.begin(), request.messages.end(), is_system)) return {};
    json.key("system").open_array();
    for (const Message& message : request.messages) {
        if (is_system(message)) TRY_DO(append_parts(json, message.parts));
    }
    json.close_array();
    return {};
}

void append_tool_choice(JsonText& json, const ToolChoice& choice) {
    std::string_view type = "auto";
    switch (choice.kind) {
        case ToolChoice::Kind::automatic:
            if (choice.parallel) return;
            break;
        case ToolChoice::Kind::none:
            type = "none";
            break;
        case ToolChoice::Kind::required:
            type = "any";
            break;
        case ToolChoice::Kind::named:
            type = "tool";
            break;
    }
    json.key("tool_choice").open().field("type", type);
    if (choice.kind == ToolChoice::Kind::named) json.field("name", choice.name);
    if (!choice.parallel && choice.kind != ToolChoice::Kind::none)
        json.field("disable_parallel_tool_use", true);
    json.close();
}

void append_tools(JsonText& json, const Request& request) {
    if (request.tools.empty()) return;
    json.key("tools").open_array();
    for (const domain::Tool& tool : request.tools) {
        json.open().field("name", tool.name);
        if (!tool.description.empty()) json.field("description", tool.description.text());
        json.raw_field("input_schema",
                       tool.parameters.empty() ? R"({"type":"object"})" : tool.parameters.text());
        if (tool.strict) json.field("strict", true);
        json.close();
    }
    json.close_array();
    append_tool_choice(json, request.tool_choice);
}

Result<void> append_output(JsonText& json, const Request& request) {
    const OutputFormat& format = request.format;
    if (format.kind == OutputFormat::Kind::json_object)
        return unsupported("json_object; ask for a json_schema");
    if (format.kind == OutputFormat::Kind::grammar) return unsupported("a grammar");
    const auto& effort = request.sampling.reasoning_effort;
    if (effort == "none") json.key("thinking").open().field("type", "disabled").close();
    const bool says_effort = effort && *effort != "none";
    const bool has_schema = format.kind == OutputFormat::Kind::json_schema;
    if (!says_effort && !has_schema) return {};
    json.key("output_config").open();
    if (says_effort) json.field("effort", *effort == "minimal" ? "low" : *effort);
    if (has_schema) {
        json.key("format").open().field("type", "json_schema");
        json.raw_field("schema", format.schema.text()).close();
    }
    json.close();
    return {};
}

Result<void> append_sampling(JsonText& json, const domain::Sampling& sampling) {
    if (sampling.logprobs) return unsupported("logprobs");
    if (sampling.frequency_penalty.value_or(0) != 0 || sampling.presence_penalty.value_or(0) != 0 ||
        sampling.repeat_penalty.value_or(1) != 1)
        return unsupported("penalties");
    json.field("max_tokens", sampling.answer_tokens_max.value_or(answer_tokens_default));
    if (sampling.temperature) json.field("temperature", std::min(*sampling.temperature, 1.0F));
    if (sampling.top_p) json.field("top_p", *sampling.top_p);
    if (sampling.top_k) json.field("top_k", *sampling.top_k);
    if (sampling.stop.empty()) return {};
    json.key("stop_sequences").open_array();
    for (const std::string& stop : sampling.stop)
        json.string(stop);
    json.close_array();
    return {};
}

}  // namespace

Result<UpstreamRequest> encode_upstream_anthropic(const Request& request,
                                                  const std::string& model) {
    if (request.operation == domain::Operation::embed) return unsupported("embeddings");
    if (request.operation == domain::Operation::complete) return unsupported("raw completions");
    UpstreamRequest upstream;
    upstream.path = "/messages";
    upstream.headers.emplace_back("anthropic-version", "2023-06-01");
    JsonText json(upstream.body);
    json.open().field("model", model);
    TRY_DO(append_system(json, request));
    TRY_DO(append_messages(json, request));
    append_tools(json, request);
    TRY_DO(append_sampling(json, request.sampling));
    TRY_DO(append_output(json, request));
    if (request.stream) json.field("stream", true);
    json.close();
    return upstream;
}

}  // namespace molly::dialects
