// POST /api/chat, /api/generate, /api/embed and /api/embeddings, from the body to a domain Request.
#include <algorithm>

#include <fmt/format.h>

#include "dialects/internal/faces.h"
#include "dialects/internal/object_text.h"
#include "dialects/internal/parts.h"

namespace molly::dialects {
namespace {

using domain::Content;
using domain::Message;
using domain::OutputFormat;
using domain::Part;
using domain::Request;
using domain::Role;

void decode_images(const Fields& fields, Message& message) {
    const json::array* images = fields.array("images");
    if (images == nullptr) return;
    for (const json::value& image : *images) {
        const json::string* bytes = image.if_string();
        if (bytes == nullptr) return fields.invalid("images", "must hold base64 strings");
        // The dialect does not say which kind of image it is, and the readers look for themselves.
        message.parts.push_back(base64_part(Part::Kind::image, *bytes, "image/png"));
    }
}

void decode_tool_call(const Fields& call, Message& message, std::size_t number) {
    if (!call.has("function")) return call.invalid("function", "is required");
    with_object(call, "function", [&](const Fields& function) {
        domain::ToolCall& made = message.tool_calls.emplace_back();
        made.id = call.text_or_empty("id");
        // The dialect's calls need no id; ours do, to find their results.
        if (made.id.empty()) made.id = fmt::format("call_{}", number);
        made.name = function.required_text("name");
        made.arguments = function.object("arguments") != nullptr ? json_of(function, "arguments")
                                                                 : Content("{}");
    });
}

/// The call that a tool message answers: the one it names, or the first without a result.
std::string answered_call(const Fields& fields, const std::vector<domain::ToolCall>& waiting) {
    const std::string_view id = fields.text_or_empty("tool_call_id");
    if (!id.empty()) return std::string(id);
    const std::string_view name = fields.text_or_empty("tool_name");
    for (const domain::ToolCall& call : waiting) {
        if (name.empty() || call.name == name) return call.id;
    }
    return std::string(name);
}

struct Conversation {
    std::vector<domain::ToolCall> waiting;  // calls without a result yet
    std::size_t calls = 0;
};

void decode_message(const Fields& fields, Request& request, Conversation& conversation) {
    Message& message = request.messages.emplace_back();
    const std::string_view role = fields.required_text("role");
    if (role == "system") {
        message.role = Role::system;
    } else if (role == "assistant") {
        message.role = Role::assistant;
    } else if (role == "tool") {
        message.role = Role::tool;
    } else if (role != "user") {
        fields.invalid("role", "must be system, user, assistant or tool");
    }
    const std::string_view text = fields.text_or_empty("content");
    if (!text.empty()) message.parts.push_back(text_part(text));
    message.reasoning = Content(std::string(fields.text_or_empty("thinking")));
    decode_images(fields, message);
    for_each_object(fields, "tool_calls", [&](const Fields& call) {
        decode_tool_call(call, message, conversation.calls++);
    });
    std::vector<domain::ToolCall>& waiting = conversation.waiting;
    waiting.insert(waiting.end(), message.tool_calls.begin(), message.tool_calls.end());
    if (message.role != Role::tool) return;
    message.tool_call_id = answered_call(fields, waiting);
    std::erase_if(waiting, [&message](const domain::ToolCall& call) {
        return call.id == message.tool_call_id;
    });
}

void decode_options(const Fields& fields, domain::Sampling& sampling) {
    with_object(fields, "options", [&sampling](const Fields& options) {
        decode_penalties(options, sampling);
        decode_stop(options, "stop", sampling.stop);
        // -1 and -2 mean: as long as it takes.
        const auto predict = options.integer("num_predict");
        if (predict && *predict > 0) sampling.answer_tokens_max = options.count("num_predict", 1);
    });
}

void decode_format(const Fields& fields, OutputFormat& format) {
    const json::value* value = fields.find("format");
    if (value == nullptr) return;
    if (value->is_object()) {
        format.kind = OutputFormat::Kind::json_schema;
        format.strict = true;
        format.schema = json_of(fields, "format");
    } else if (*value == "json") {
        format.kind = OutputFormat::Kind::json_object;
    } else if (*value != "") {
        fields.invalid("format", "must be \"json\" or a JSON schema");
    }
}

void decode_think(const Fields& fields, domain::Sampling& sampling) {
    const json::value* think = fields.find("think");
    if (think == nullptr) return;
    if (const bool* wanted = think->if_bool()) {
        if (!*wanted) sampling.reasoning_effort = "none";
    } else if (const json::string* effort = think->if_string()) {
        sampling.reasoning_effort = std::string(std::string_view(*effort));
    } else {
        fields.invalid("think", "must be true, false, low, medium or high");
    }
}

void decode_common(const Fields& fields, Decoded& decoded) {
    Request& request = decoded.request;
    request.dialect = "ollama";
    request.model = fields.required_text("model");
    request.stream = fields.flag("stream", true);
    decode_options(fields, request.sampling);
    decode_format(fields, request.format);
    decode_think(fields, request.sampling);
    request.sampling.logprobs = fields.flag("logprobs");
    request.sampling.top_logprobs = fields.count("top_logprobs", 0, 20).value_or(0);
    request.truncate = fields.flag("truncate");
    decode_extensions(fields, request);
}

void decode_raw(const Fields& fields, Request& request) {
    request.operation = domain::Operation::complete;
    request.prompt = Content(std::string(fields.required_text("prompt")));
    request.suffix = Content(std::string(fields.text_or_empty("suffix")));
    if (fields.has("images")) fields.unsupported("images", "cannot go with raw or suffix");
}

}  // namespace

void decode_ollama_chat(const Fields& fields, Decoded& decoded) {
    Request& request = decoded.request;
    request.operation = domain::Operation::chat;
    Conversation conversation;
    for_each_object(fields, "messages",
                    [&](const Fields& message) { decode_message(message, request, conversation); });
    if (request.messages.empty())
        fields.invalid("messages", "is required and must hold at least one message");
    for_each_object(fields, "tools", [&request](const Fields& tool) {
        if (!tool.has("function")) return tool.invalid("function", "is required");
        with_object(tool, "function", [&request](const Fields& function) {
            decode_function(function, "parameters", request);
        });
    });
    decode_common(fields, decoded);
}

void decode_ollama_generate(const Fields& fields, Decoded& decoded) {
    Request& request = decoded.request;
    request.operation = domain::Operation::chat;
    decode_common(fields, decoded);
    if (!fields.text_or_empty("template").empty())
        fields.unsupported("template", "is not possible; send the finished prompt with raw");
    if (const json::array* context = fields.array("context"); context && !context->empty())
        fields.unsupported("context", "is not possible; send the conversation to /api/chat");
    if (fields.flag("raw") || !fields.text_or_empty("suffix").empty())
        return decode_raw(fields, request);
    const std::string_view system = fields.text_or_empty("system");
    if (!system.empty())
        request.messages.push_back(domain::text_message(Role::system, std::string(system)));
    const std::string_view prompt = fields.required_text("prompt");
    request.messages.push_back(domain::text_message(Role::user, std::string(prompt)));
    decode_images(fields, request.messages.back());
}

void decode_ollama_embed(const Fields& fields, Decoded& decoded) {
    Request& request = decoded.request;
    request.operation = domain::Operation::embed;
    decode_common(fields, decoded);
    request.stream = false;
    request.truncate = fields.flag("truncate", true);
    request.dimensions = fields.count("dimensions", 1);
    decoded.legacy_embeddings = !fields.has("input") && fields.has("prompt");
    if (decoded.legacy_embeddings) {
        request.inputs.emplace_back(std::string(fields.text_or_empty("prompt")));
    } else {
        decode_inputs(fields, request);
    }
}

}  // namespace molly::dialects
