// POST /v1/messages, from the body to a domain Request.
#include "dialects/internal/faces.h"
#include "dialects/internal/parts.h"

namespace molly::dialects {
namespace {

using domain::Content;
using domain::Message;
using domain::OutputFormat;
using domain::Part;
using domain::Request;
using domain::Role;
using domain::ToolChoice;

/// `source` of an image or a document.
void decode_source(const Fields& block, Part::Kind kind, Message& message) {
    if (!block.has("source")) return block.invalid("source", "is required");
    with_object(block, "source", [&](const Fields& source) {
        const std::string_view type = source.required_text("type");
        if (type == "base64") {
            message.parts.push_back(base64_part(kind, source.required_text("data"),
                                                source.required_text("media_type")));
        } else if (type == "url") {
            message.parts.push_back(part_of_url(kind, source.required_text("url")));
        } else if (type == "text" && kind == Part::Kind::file) {
            message.parts.push_back(text_part(source.text_or_empty("data")));
        } else {
            source.unsupported("type", "must be base64 or url");
        }
    });
}

/// Blocks that users, tools and system texts may hold.
void decode_plain_block(const Fields& block, Message& message) {
    const std::string_view type = block.required_text("type");
    if (type == "text") {
        message.parts.push_back(text_part(block.text_or_empty("text")));
    } else if (type == "image") {
        decode_source(block, Part::Kind::image, message);
    } else if (type == "document") {
        decode_source(block, Part::Kind::file, message);
    } else {
        block.unsupported("type", "is no block that can stand here");
    }
}

/// A string or an array of plain blocks.
void decode_plain_content(const Fields& fields, std::string_view name, Message& message) {
    const json::value* content = fields.find(name);
    if (content == nullptr) return;
    if (const json::string* text = content->if_string()) {
        message.parts.push_back(text_part(*text));
        return;
    }
    for_each_object(fields, name,
                    [&message](const Fields& block) { decode_plain_block(block, message); });
}

/// Tool results are blocks of a user turn there, and messages of their own here.
void decode_user_turn(const Fields& fields, Request& request) {
    if (fields.find("content")->is_string()) {
        Message& message = request.messages.emplace_back();
        decode_plain_content(fields, "content", message);
        return;
    }
    bool open = false;  // whether the last message is this turn's user message
    for_each_object(fields, "content", [&](const Fields& block) {
        if (block.text_or_empty("type") == "tool_result") {
            Message& result = request.messages.emplace_back();
            result.role = Role::tool;
            result.tool_call_id = block.required_text("tool_use_id");
            result.tool_failed = block.flag("is_error");
            decode_plain_content(block, "content", result);
            open = false;
            return;
        }
        if (!open) request.messages.emplace_back();
        open = true;
        decode_plain_block(block, request.messages.back());
    });
}

void decode_assistant_block(const Fields& block, Message& message, std::string& reasoning) {
    const std::string_view type = block.required_text("type");
    if (type == "text") {
        message.parts.push_back(text_part(block.text_or_empty("text")));
    } else if (type == "thinking") {
        if (!reasoning.empty()) reasoning += '\n';
        reasoning += block.text_or_empty("thinking");
    } else if (type == "tool_use") {
        domain::ToolCall& call = message.tool_calls.emplace_back();
        call.id = block.required_text("id");
        call.name = block.required_text("name");
        call.arguments = block.object("input") != nullptr ? json_of(block, "input") : Content("{}");
    } else if (type != "redacted_thinking") {
        block.unsupported("type", "must be text, thinking or tool_use");
    }
}

void decode_assistant_turn(const Fields& fields, Request& request) {
    Message& message = request.messages.emplace_back();
    message.role = Role::assistant;
    if (fields.find("content")->is_string())
        return decode_plain_content(fields, "content", message);
    std::string reasoning;
    for_each_object(fields, "content", [&](const Fields& block) {
        decode_assistant_block(block, message, reasoning);
    });
    message.reasoning = Content(std::move(reasoning));
}

void decode_turn(const Fields& fields, Request& request) {
    const std::string_view role = fields.required_text("role");
    if (!fields.has("content")) return fields.invalid("content", "is required");
    if (role == "user") {
        decode_user_turn(fields, request);
    } else if (role == "assistant") {
        decode_assistant_turn(fields, request);
    } else if (role == "system") {
        Message& message = request.messages.emplace_back();
        message.role = Role::system;
        decode_plain_content(fields, "content", message);
    } else {
        fields.invalid("role", "must be user, assistant or system");
    }
}

void decode_tools(const Fields& fields, Request& request) {
    for_each_object(fields, "tools", [&request](const Fields& tool) {
        const std::string_view type = tool.text_or_empty("type");
        if (!type.empty() && type != "custom")
            return tool.unsupported("type", "must be custom; other tools do not exist here");
        decode_function(tool, "input_schema", request);
    });
}

void decode_tool_choice(const Fields& fields, ToolChoice& choice) {
    with_object(fields, "tool_choice", [&choice](const Fields& asked) {
        choice.parallel = !asked.flag("disable_parallel_tool_use");
        const std::string_view type = asked.required_text("type");
        if (type == "any") {
            choice.kind = ToolChoice::Kind::required;
        } else if (type == "none") {
            choice.kind = ToolChoice::Kind::none;
        } else if (type == "tool") {
            choice.kind = ToolChoice::Kind::named;
            choice.name = asked.required_text("name");
        } else if (type != "auto") {
            asked.invalid("type", "must be auto, any, tool or none");
        }
    });
}

void decode_thinking(const Fields& fields, domain::Sampling& sampling) {
    with_object(fields, "thinking", [&sampling](const Fields& thinking) {
        const std::string_view type = thinking.required_text("type");
        if (type == "disabled") {
            sampling.reasoning_effort = "none";
        } else if (type == "enabled") {
            const std::uint32_t budget = thinking.count("budget_tokens").value_or(0);
            sampling.reasoning_effort = budget <= 2048 ? "low" : budget <= 8192 ? "medium" : "high";
        }
    });
}

void decode_schema(const Fields& fields, std::string_view name, OutputFormat& format) {
    with_object(fields, name, [&format](const Fields& asked) {
        if (asked.required_text("type") != "json_schema")
            return asked.unsupported("type", "must be json_schema");
        if (asked.object("schema") == nullptr) return asked.invalid("schema", "is required");
        format.kind = OutputFormat::Kind::json_schema;
        format.strict = true;
        format.schema = json_of(asked, "schema");
    });
}

void decode_output(const Fields& fields, Request& request) {
    decode_schema(fields, "output_format", request.format);
    with_object(fields, "output_config", [&request](const Fields& output) {
        if (const auto effort = output.text("effort"))
            request.sampling.reasoning_effort = std::string(*effort);
        decode_schema(output, "format", request.format);
    });
}

}  // namespace

void decode_anthropic(const Fields& fields, Decoded& decoded) {
    Request& request = decoded.request;
    request.operation = domain::Operation::chat;
    request.dialect = "anthropic";
    request.model = fields.required_text("model");
    request.stream = fields.flag("stream");
    if (fields.has("system")) {
        Message& system = request.messages.emplace_back();
        system.role = Role::system;
        decode_plain_content(fields, "system", system);
        if (system.parts.empty()) request.messages.pop_back();
    }
    const std::size_t before = request.messages.size();
    for_each_object(fields, "messages",
                    [&request](const Fields& turn) { decode_turn(turn, request); });
    if (request.messages.size() == before)
        fields.invalid("messages", "is required and must hold at least one message");
    decode_tools(fields, request);
    decode_tool_choice(fields, request.tool_choice);
    domain::Sampling& sampling = request.sampling;
    sampling.answer_tokens_max = fields.count("max_tokens", 1);
    if (!sampling.answer_tokens_max) fields.invalid("max_tokens", "is required");
    sampling.temperature = fields.number("temperature", 0, 1);
    sampling.top_p = fields.number("top_p", 0, 1);
    sampling.top_k = fields.count("top_k");
    decode_stop(fields, "stop_sequences", sampling.stop);
    decode_thinking(fields, sampling);
    decode_output(fields, request);
    with_object(fields, "metadata", [&request](const Fields& metadata) {
        request.user = metadata.text_or_empty("user_id");
    });
    decode_extensions(fields, request);
    if (const json::array* servers = fields.array("mcp_servers"); servers && !servers->empty())
        fields.unsupported("mcp_servers", "is not possible; give custom tools instead");
}

}  // namespace molly::dialects
