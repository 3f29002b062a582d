// The objects of the Responses API.
#include <fmt/format.h>

#include "dialects/internal/faces.h"
#include "dialects/internal/openai.h"
#include "dialects/internal/parts.h"
#include "dialects/internal/responses.h"

namespace molly::dialects {
namespace {

using domain::FinishReason;
using domain::OutputFormat;
using domain::Request;
using domain::ToolChoice;
using Kind = OutputItem::Kind;

std::string_view error_code(ErrorCode code) {
    if (code == ErrorCode::rate_limited || code == ErrorCode::exhausted)
        return "rate_limit_exceeded";
    if (code == ErrorCode::invalid_request || code == ErrorCode::unsupported)
        return "invalid_prompt";
    return "server_error";
}

void append_response_usage(JsonText& json, const domain::Usage& usage) {
    json.key("usage")
        .open()
        .field("input_tokens", usage.prompt_tokens)
        .key("input_tokens_details")
        .open()
        .field("cached_tokens", usage.cached_tokens)
        .field("cache_write_tokens", 0)
        .close()
        .field("output_tokens", usage.answer_tokens)
        .key("output_tokens_details")
        .open()
        .field("reasoning_tokens", usage.reasoning_tokens)
        .close()
        .field("total_tokens", std::uint64_t{usage.prompt_tokens} + usage.answer_tokens)
        .close();
}

void append_optional_text(JsonText& json, std::string_view name, std::string_view text) {
    if (text.empty()) {
        json.null_field(name);
    } else {
        json.field(name, text);
    }
}

template <class Value>
void append_optional(JsonText& json, std::string_view name, const std::optional<Value>& value) {
    if (value) {
        json.field(name, *value);
    } else {
        json.null_field(name);
    }
}

void append_tools(JsonText& json, const Request& request) {
    json.key("tools").open_array();
    for (const domain::Tool& tool : request.tools) {
        json.open().field("type", "function").field("name", tool.name);
        append_optional_text(json, "description", tool.description.text());
        json.raw_field("parameters", tool.parameters.empty() ? "null" : tool.parameters.text());
        json.field("strict", tool.strict).close();
    }
    json.close_array().field("parallel_tool_calls", request.tool_choice.parallel);
    json.key("tool_choice");
    switch (request.tool_choice.kind) {
        case ToolChoice::Kind::automatic:
            json.string("auto");
            return;
        case ToolChoice::Kind::none:
            json.string("none");
            return;
        case ToolChoice::Kind::required:
            json.string("required");
            return;
        case ToolChoice::Kind::named:
            json.open().field("type", "function").field("name", request.tool_choice.name).close();
            return;
    }
}

void append_format(JsonText& json, const OutputFormat& format) {
    json.key("text").open().key("format").open();
    switch (format.kind) {
        case OutputFormat::Kind::json_object:
            json.field("type", "json_object");
            break;
        case OutputFormat::Kind::json_schema:
            json.field("type", "json_schema").field("name", format.name);
            json.raw_field("schema", format.schema.text()).field("strict", format.strict);
            break;
        case OutputFormat::Kind::text:
        case OutputFormat::Kind::grammar:
            json.field("type", "text");
            break;
    }
    json.close().close();
}

/// What the answer repeats of the request.
void append_request(JsonText& json, const Envelope& envelope) {
    static const Request nothing;
    const Request& request = envelope.request != nullptr ? *envelope.request : nothing;
    append_optional_text(json, "instructions", envelope.instructions);
    append_tools(json, request);
    append_format(json, request.format);
    append_optional(json, "temperature", request.sampling.temperature);
    append_optional(json, "top_p", request.sampling.top_p);
    append_optional(json, "max_output_tokens", request.sampling.answer_tokens_max);
    json.key("reasoning").open();
    append_optional(json, "effort", request.sampling.reasoning_effort);
    json.null_field("summary").close();
    append_optional_text(json, "previous_response_id", envelope.previous_response_id);
    json.field("store", envelope.store).field("background", false);
    json.field("truncation", request.truncate ? "auto" : "disabled");
    json.key("metadata").open();
    for (const auto& [key, value] : request.metadata) {
        std::string name;
        append_json_string(name, key);
        json.key(std::string_view(name).substr(1, name.size() - 2)).string(value);
    }
    json.close();
    if (!request.user.empty()) json.field("user", request.user);
}

void append_state(JsonText& json, const domain::Response* response, const Error* error) {
    if (error != nullptr) {
        json.field("status", "failed").key("error").open();
        json.field("code", error_code(error->code())).field("message", error->message()).close();
        json.null_field("incomplete_details");
        return;
    }
    const auto reason = response == nullptr ? std::nullopt : incomplete_reason(*response);
    json.field("status", response == nullptr ? "in_progress" : reason ? "incomplete" : "completed");
    json.null_field("error");
    if (reason) {
        json.key("incomplete_details").open().field("reason", *reason).close();
    } else {
        json.null_field("incomplete_details");
    }
}

ItemContent content_of(const domain::Response& response, const OutputItem& item) {
    switch (item.kind) {
        case Kind::reasoning:
            return {.text = response.reasoning.text()};
        case Kind::message:
            return {.text = response.text.text(), .logprobs = &response.logprobs};
        case Kind::call:
            break;
    }
    if (item.call >= response.tool_calls.size()) return {};
    const domain::ToolCall& call = response.tool_calls[item.call];
    return {.text = call.arguments.text(), .call_id = call.id, .name = call.name};
}

}  // namespace

std::optional<std::string_view> incomplete_reason(const domain::Response& response) {
    if (response.finish == FinishReason::length) return "max_output_tokens";
    if (response.finish == FinishReason::content_filter) return "content_filter";
    return std::nullopt;
}

std::string item_id(const Envelope& envelope, const OutputItem& item) {
    switch (item.kind) {
        case Kind::reasoning:
            return "rs_" + envelope.id;
        case Kind::message:
            return "msg_" + envelope.id;
        case Kind::call:
            break;
    }
    return fmt::format("fc_{}_{}", envelope.id, item.call);
}

void append_token_array(JsonText& json, const std::vector<domain::TokenLogprob>& logprobs) {
    json.open_array();
    for (const domain::TokenLogprob& token : logprobs)
        append_token(json, token);
    json.close_array();
}

void append_text_part(JsonText& json, Kind kind, const ItemContent& content) {
    if (kind == Kind::reasoning) {
        json.open().field("type", "reasoning_text").field("text", content.text).close();
        return;
    }
    json.open().field("type", "output_text").field("text", content.text);
    json.key("annotations").open_array().close_array().key("logprobs");
    append_token_array(json, content.logprobs != nullptr ? *content.logprobs
                                                         : std::vector<domain::TokenLogprob>());
    json.close();
}

void append_item(JsonText& json, const Envelope& envelope, const OutputItem& item,
                 const ItemContent& content) {
    json.open().field("id", item_id(envelope, item));
    if (item.kind == Kind::call) {
        json.field("type", "function_call").field("call_id", content.call_id);
        json.field("name", content.name).field("arguments", content.text);
    } else {
        if (item.kind == Kind::reasoning) {
            json.field("type", "reasoning").key("summary").open_array().close_array();
        } else {
            json.field("type", "message").field("role", "assistant");
        }
        json.key("content").open_array();
        if (!content.begun_only) append_text_part(json, item.kind, content);
        json.close_array();
    }
    json.field("status", content.begun_only ? "in_progress" : "completed").close();
}

std::vector<OutputItem> items_of(const domain::Response& response) {
    std::vector<OutputItem> items;
    if (!response.reasoning.empty()) items.push_back({.kind = Kind::reasoning});
    if (!response.text.empty() || response.tool_calls.empty())
        items.push_back({.kind = Kind::message});
    for (std::uint32_t i = 0; i < response.tool_calls.size(); ++i)
        items.push_back({.kind = Kind::call, .call = i});
    return items;
}

void append_response(JsonText& json, const Envelope& envelope, const domain::Response* response,
                     const std::vector<OutputItem>& items, const Error* error) {
    json.open()
        .field("id", "resp_" + envelope.id)
        .field("object", "response")
        .field("created_at", unix_seconds(envelope.created));
    append_state(json, response, error);
    json.field("model", envelope.model).key("output").open_array();
    if (response != nullptr) {
        for (const OutputItem& item : items)
            append_item(json, envelope, item, content_of(*response, item));
    }
    json.close_array();
    append_request(json, envelope);
    if (response != nullptr) {
        append_response_usage(json, response->usage);
        append_extensions(json, envelope, *response);
    }
    json.close();
}

std::string encode_openai_response(const Envelope& envelope, const domain::Response& response) {
    std::string out;
    JsonText json(out);
    append_response(json, envelope, &response, items_of(response), nullptr);
    return out;
}

}  // namespace molly::dialects
