// POST /v1/responses, from the body to a domain Request.
#include <algorithm>
#include <array>

#include "dialects/internal/faces.h"
#include "dialects/internal/openai.h"
#include "dialects/internal/parts.h"

namespace molly::dialects {
namespace {

using domain::Content;
using domain::Message;
using domain::Part;
using domain::Request;
using domain::Role;
using domain::ToolChoice;

// Offers of tools that the provider or the app itself runs. A model may do without an offer, and
// agents (codex) send them with every request, so they are left out; all others are refused.
constexpr std::array<std::string_view, 8> tools_left_out = {"web_search",
                                                            "web_search_2025_08_26",
                                                            "web_search_preview",
                                                            "namespace",
                                                            "image_generation",
                                                            "local_shell",
                                                            "custom",
                                                            "tool_search"};

void decode_input_file(const Fields& part, Message& message) {
    const std::string_view bytes = part.text_or_empty("file_data");
    const std::string_view url = part.text_or_empty("file_url");
    if (bytes.empty() && url.empty())
        return part.unsupported("file_id", "is not known here; send file_data or file_url");
    message.parts.push_back(part_of_url(Part::Kind::file, bytes.empty() ? url : bytes));
}

void decode_part(const Fields& part, Message& message) {
    const std::string_view type = part.required_text("type");
    if (type == "input_text" || type == "output_text" || type == "text") {
        message.parts.push_back(text_part(part.text_or_empty("text")));
    } else if (type == "refusal") {
        message.parts.push_back(text_part(part.text_or_empty("refusal")));
    } else if (type == "input_image") {
        if (!part.has("image_url"))
            return part.unsupported("file_id", "is not known here; send image_url");
        message.parts.push_back(part_of_url(Part::Kind::image, part.required_text("image_url")));
    } else if (type == "input_file") {
        decode_input_file(part, message);
    } else {
        part.unsupported("type", "must be input_text, output_text, input_image or input_file");
    }
}

/// A string or an array of parts.
void decode_content(const Fields& fields, std::string_view name, Message& message) {
    const json::value* content = fields.find(name);
    if (content == nullptr) return fields.invalid(name, "is required");
    if (const json::string* text = content->if_string()) {
        message.parts.push_back(text_part(*text));
        return;
    }
    for_each_object(fields, name, [&message](const Fields& part) { decode_part(part, message); });
}

/// Turns the list of items into messages: reasoning, text and calls of one assistant turn are items
/// of their own there, and one message here.
class Items {
public:
    explicit Items(Request& request) : request_(request) {}

    void add(const Fields& item) {
        const std::string_view type = item.text_or_empty("type");
        if (type == "function_call") {
            add_call(item);
        } else if (type == "function_call_output") {
            Message& result = request_.messages.emplace_back();
            result.role = Role::tool;
            result.tool_call_id = item.required_text("call_id");
            decode_content(item, "output", result);
        } else if (type == "reasoning") {
            add_reasoning(item);
        } else if (type == "message" || (type.empty() && item.has("role"))) {
            add_message(item);
        } else {
            item.unsupported("type",
                             "must be message, function_call, function_call_output or reasoning");
        }
    }

private:
    Message& assistant() {
        Message& message = request_.messages.emplace_back();
        message.role = Role::assistant;
        message.reasoning = Content(std::exchange(reasoning_, {}));
        return message;
    }

    void add_message(const Fields& item) {
        const std::string_view role = item.required_text("role");
        if (role == "assistant") return decode_content(item, "content", assistant());
        Message& message = request_.messages.emplace_back();
        if (role == "system" || role == "developer") {
            message.role = Role::system;
        } else if (role != "user") {
            return item.invalid("role", "must be user, assistant, system or developer");
        }
        decode_content(item, "content", message);
    }

    void add_call(const Fields& item) {
        std::vector<Message>& messages = request_.messages;
        const bool continues =
            !messages.empty() && messages.back().role == Role::assistant && reasoning_.empty();
        Message& message = continues ? messages.back() : assistant();
        domain::ToolCall& call = message.tool_calls.emplace_back();
        call.id = item.required_text("call_id");
        call.name = item.required_text("name");
        call.arguments = Content(std::string(item.text_or_empty("arguments")));
    }

    void add_reasoning(const Fields& item) {
        const auto add = [this](const Fields& part) {
            if (!reasoning_.empty()) reasoning_ += '\n';
            reasoning_ += part.text_or_empty("text");
        };
        for_each_object(item, "content", add);
        if (reasoning_.empty()) for_each_object(item, "summary", add);
    }

    Request& request_;
    std::string reasoning_;  // of the assistant turn that follows
};

void decode_input(const Fields& fields, Request& request) {
    const json::value* input = fields.find("input");
    if (input == nullptr) return;
    if (const json::string* text = input->if_string()) {
        request.messages.push_back(
            domain::text_message(Role::user, std::string(std::string_view(*text))));
        return;
    }
    Items items(request);
    for_each_object(fields, "input", [&items](const Fields& item) { items.add(item); });
}

void decode_tools(const Fields& fields, Request& request) {
    for_each_object(fields, "tools", [&request](const Fields& tool) {
        const std::string_view type = tool.required_text("type");
        if (type == "function") return decode_function(tool, "parameters", request);
        if (std::find(tools_left_out.begin(), tools_left_out.end(), type) == tools_left_out.end())
            tool.unsupported("type", "is not possible; give a function tool instead");
    });
}

void decode_tool_choice(const Fields& fields, ToolChoice& choice) {
    choice.parallel = fields.flag("parallel_tool_calls", true);
    const json::value* value = fields.find("tool_choice");
    if (value == nullptr) return;
    if (const json::string* word = value->if_string())
        return decode_choice_word(fields, *word, choice);
    with_object(fields, "tool_choice", [&choice](const Fields& named) {
        if (named.required_text("type") != "function")
            return named.unsupported("type", "must be function");
        choice.kind = ToolChoice::Kind::named;
        choice.name = named.required_text("name");
    });
}

void decode_text(const Fields& fields, Request& request) {
    with_object(fields, "text", [&request](const Fields& text) {
        with_object(text, "format", [&request](const Fields& format) {
            const std::string_view type = format.required_text("type");
            if (type == "json_schema") return decode_json_schema(format, request.format);
            decode_plain_format(format, type, request.format);
        });
    });
}

void decode_logprobs(const Fields& fields, domain::Sampling& sampling) {
    const auto top = fields.count("top_logprobs", 0, 20);
    sampling.top_logprobs = top.value_or(0);
    const json::array* include = fields.array("include");
    const bool asked = include != nullptr &&
                       std::any_of(include->begin(), include->end(), [](const json::value& name) {
                           return name == "message.output_text.logprobs";
                       });
    sampling.logprobs = asked || sampling.top_logprobs > 0;
}

void refuse_unsupported(const Fields& fields) {
    if (fields.flag("background"))
        fields.unsupported("background", "is not possible; wait for the answer or stream it");
    if (fields.has("conversation"))
        fields.unsupported("conversation", "is not possible; use previous_response_id");
    if (fields.has("prompt"))
        fields.unsupported("prompt", "is not possible; send its text as instructions");
}

}  // namespace

void decode_openai_response(const Fields& fields, Decoded& decoded) {
    Request& request = decoded.request;
    request.operation = domain::Operation::chat;
    request.model = fields.text_or_empty("model");
    if (request.model.empty()) request.model = "auto";
    decoded.instructions = fields.text_or_empty("instructions");
    if (!decoded.instructions.empty())
        request.messages.push_back(domain::text_message(Role::system, decoded.instructions));
    const std::size_t before = request.messages.size();
    decode_input(fields, request);
    decoded.previous_response_id = fields.text_or_empty("previous_response_id");
    if (request.messages.size() == before && decoded.previous_response_id.empty())
        fields.invalid("input", "is required: a text, or at least one item");
    decoded.store = fields.flag("store", true);
    decode_tools(fields, request);
    decode_tool_choice(fields, request.tool_choice);
    decode_text(fields, request);
    decode_penalties(fields, request.sampling);
    decode_logprobs(fields, request.sampling);
    request.sampling.answer_tokens_max = fields.count("max_output_tokens", 1);
    with_object(fields, "reasoning", [&request](const Fields& reasoning) {
        if (const auto effort = reasoning.text("effort"))
            request.sampling.reasoning_effort = std::string(*effort);
    });
    request.truncate = fields.text_or_empty("truncation") == "auto";
    decode_openai_common(fields, decoded);
    refuse_unsupported(fields);
}

}  // namespace molly::dialects
