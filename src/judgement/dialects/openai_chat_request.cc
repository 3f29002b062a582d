// POST /v1/chat/completions, from the body to a domain Request.
#include "dialects/internal/faces.h"
#include "dialects/internal/openai.h"
#include "dialects/internal/parts.h"

namespace molly::dialects {
namespace {

using domain::Message;
using domain::OutputFormat;
using domain::Part;
using domain::Role;
using domain::ToolChoice;

void decode_audio(const Fields& part, Message& message) {
    with_object(part, "input_audio", [&message](const Fields& audio) {
        const std::string media = "audio/" + std::string(audio.required_text("format"));
        message.parts.push_back(base64_part(Part::Kind::audio, audio.required_text("data"), media));
    });
}

void decode_file(const Fields& part, Message& message) {
    with_object(part, "file", [&message](const Fields& file) {
        if (file.has("file_id"))
            return file.unsupported("file_id", "is not known here; send file_data");
        message.parts.push_back(part_of_url(Part::Kind::file, file.required_text("file_data")));
    });
}

void decode_part(const Fields& part, Message& message) {
    const std::string_view type = part.required_text("type");
    if (type == "text") {
        message.parts.push_back(text_part(part.text_or_empty("text")));
    } else if (type == "refusal") {
        message.parts.push_back(text_part(part.text_or_empty("refusal")));
    } else if (type == "image_url") {
        if (!part.has("image_url")) return part.invalid("image_url", "is required");
        with_object(part, "image_url", [&message](const Fields& image) {
            message.parts.push_back(part_of_url(Part::Kind::image, image.required_text("url")));
        });
    } else if (type == "input_audio") {
        decode_audio(part, message);
    } else if (type == "file") {
        decode_file(part, message);
    } else {
        part.unsupported("type", "must be text, image_url, input_audio, file or refusal");
    }
}

void decode_content(const Fields& fields, Message& message) {
    const json::value* content = fields.find("content");
    if (content == nullptr) {
        const bool may_be_absent = message.role == Role::assistant;
        if (!may_be_absent) fields.invalid("content", "is required");
        return;
    }
    if (const json::string* text = content->if_string()) {
        message.parts.push_back(text_part(*text));
        return;
    }
    if (!content->is_array())
        return fields.invalid("content", "must be a string or an array of content parts");
    for_each_object(fields, "content",
                    [&message](const Fields& part) { decode_part(part, message); });
}

void decode_tool_call(const Fields& call, Message& message) {
    if (call.has("type") && call.text("type") != "function")
        return call.unsupported("type", "must be function");
    if (!call.has("function")) return call.invalid("function", "is required");
    with_object(call, "function", [&](const Fields& function) {
        domain::ToolCall& made = message.tool_calls.emplace_back();
        made.id = call.text_or_empty("id");
        made.name = function.required_text("name");
        made.arguments = domain::Content(std::string(function.text_or_empty("arguments")));
    });
}

void decode_role(const Fields& fields, Message& message) {
    const std::string_view role = fields.required_text("role");
    if (role == "user") {
        message.role = Role::user;
    } else if (role == "assistant") {
        message.role = Role::assistant;
    } else if (role == "system" || role == "developer") {
        message.role = Role::system;
    } else if (role == "tool") {
        message.role = Role::tool;
        message.tool_call_id = fields.required_text("tool_call_id");
    } else if (role == "function") {
        fields.unsupported("role", "is of the legacy function API; use tool and tool_call_id");
    } else {
        fields.invalid("role", "must be system, developer, user, assistant or tool");
    }
}

void decode_message(const Fields& fields, domain::Request& request) {
    Message& message = request.messages.emplace_back();
    decode_role(fields, message);
    message.name = fields.text_or_empty("name");
    if (message.role == Role::assistant) {
        message.reasoning = domain::Content(std::string(fields.text_or_empty("reasoning_content")));
        for_each_object(fields, "tool_calls",
                        [&message](const Fields& call) { decode_tool_call(call, message); });
        if (fields.has("function_call"))
            fields.unsupported("function_call", "is of the legacy function API; use tool_calls");
    }
    decode_content(fields, message);
}

void decode_tools(const Fields& fields, domain::Request& request) {
    for_each_object(fields, "tools", [&request](const Fields& tool) {
        if (tool.required_text("type") != "function")
            return tool.unsupported("type", "must be function; other tools do not exist here");
        if (!tool.has("function")) return tool.invalid("function", "is required");
        with_object(tool, "function", [&request](const Fields& function) {
            decode_function(function, "parameters", request);
        });
    });
}

void decode_named_choice(const Fields& choice, ToolChoice& out) {
    if (choice.required_text("type") != "function")
        return choice.unsupported("type", "must be function");
    out.kind = ToolChoice::Kind::named;
    if (!choice.has("function")) return choice.invalid("function", "is required");
    with_object(choice, "function",
                [&out](const Fields& function) { out.name = function.required_text("name"); });
}

void decode_tool_choice(const Fields& fields, ToolChoice& choice) {
    choice.parallel = fields.flag("parallel_tool_calls", true);
    const json::value* value = fields.find("tool_choice");
    if (value == nullptr) return;
    const json::string* text = value->if_string();
    if (text != nullptr) return decode_choice_word(fields, *text, choice);
    with_object(fields, "tool_choice",
                [&choice](const Fields& named) { decode_named_choice(named, choice); });
}

void decode_format(const Fields& fields, OutputFormat& format) {
    with_object(fields, "response_format", [&format](const Fields& asked) {
        const std::string_view type = asked.required_text("type");
        if (type == "json_schema") {
            if (!asked.has("json_schema")) return asked.invalid("json_schema", "is required");
            return with_object(asked, "json_schema", [&format](const Fields& schema) {
                decode_json_schema(schema, format);
            });
        }
        decode_plain_format(asked, type, format);
    });
}

void decode_logprobs(const Fields& fields, domain::Sampling& sampling) {
    sampling.logprobs = fields.flag("logprobs");
    const auto top = fields.count("top_logprobs", 0, 20);
    sampling.top_logprobs = top.value_or(0);
    if (top && *top > 0 && !sampling.logprobs)
        fields.invalid("top_logprobs", "needs logprobs to be true");
}

void refuse_unsupported(const Fields& fields) {
    if (fields.has("functions"))
        fields.unsupported("functions", "is of the legacy function API; use tools");
    if (fields.has("function_call"))
        fields.unsupported("function_call", "is of the legacy function API; use tool_choice");
    if (fields.has("audio")) fields.unsupported("audio", "is not possible: answers are text");
    if (fields.has("web_search_options"))
        fields.unsupported("web_search_options", "is not possible; give a function tool instead");
    if (const json::array* modalities = fields.array("modalities")) {
        for (const json::value& modality : *modalities) {
            if (modality != "text") fields.unsupported("modalities", "must be [\"text\"]");
        }
    }
}

}  // namespace

void decode_openai_chat(const Fields& fields, Decoded& decoded) {
    domain::Request& request = decoded.request;
    request.operation = domain::Operation::chat;
    request.model = fields.required_text("model");
    for_each_object(fields, "messages",
                    [&request](const Fields& message) { decode_message(message, request); });
    if (request.messages.empty())
        fields.invalid("messages", "is required and must hold at least one message");
    decode_tools(fields, request);
    decode_tool_choice(fields, request.tool_choice);
    decode_format(fields, request.format);
    decode_penalties(fields, request.sampling);
    decode_logprobs(fields, request.sampling);
    decode_stop(fields, "stop", request.sampling.stop);
    const auto tokens_max = fields.count("max_completion_tokens", 1);
    request.sampling.answer_tokens_max = tokens_max ? tokens_max : fields.count("max_tokens", 1);
    if (const auto effort = fields.text("reasoning_effort"))
        request.sampling.reasoning_effort = std::string(*effort);
    decode_openai_common(fields, decoded);
    refuse_unsupported(fields);
}

}  // namespace molly::dialects
