#include "gateway/conversation.h"

#include <array>
#include <utility>

#include "base/json.h"

namespace molly::gateway {
namespace {

using domain::Content;
using domain::Part;
using domain::Role;

constexpr std::array roles = {Role::system, Role::user, Role::assistant, Role::tool};

json::object encode(const Part& part) {
    json::object out;
    out["kind"] = static_cast<int>(part.kind);
    out["text"] = part.text.text();
    if (!part.media_type.empty()) out["media_type"] = part.media_type;
    if (part.is_url) out["is_url"] = true;
    return out;
}

json::object encode(const domain::Message& message) {
    json::object out;
    out["role"] = std::string(to_string(message.role));
    json::array parts;
    for (const Part& part : message.parts)
        parts.push_back(encode(part));
    out["parts"] = std::move(parts);
    if (!message.name.empty()) out["name"] = message.name;
    if (!message.reasoning.empty()) out["reasoning"] = message.reasoning.text();
    if (!message.tool_call_id.empty()) out["tool_call_id"] = message.tool_call_id;
    if (message.tool_failed) out["tool_failed"] = true;
    json::array calls;
    for (const domain::ToolCall& call : message.tool_calls) {
        calls.push_back(json::object{
            {"id", call.id}, {"name", call.name}, {"arguments", call.arguments.text()}});
    }
    if (!calls.empty()) out["tool_calls"] = std::move(calls);
    return out;
}

std::string text_at(const json::object& object, std::string_view name) {
    const json::value* value = object.if_contains(name);
    return value != nullptr && value->is_string() ? std::string(value->get_string())
                                                  : std::string();
}

bool flag_at(const json::object& object, std::string_view name) {
    const json::value* value = object.if_contains(name);
    return value != nullptr && value->is_bool() && value->get_bool();
}

const json::array& list_at(const json::object& object, std::string_view name) {
    static const json::array none;
    const json::value* value = object.if_contains(name);
    return value != nullptr && value->is_array() ? value->get_array() : none;
}

Part decode_part(const json::object& in) {
    Part part;
    const json::value* kind = in.if_contains("kind");
    if (kind != nullptr && kind->is_int64() && kind->get_int64() >= 0 && kind->get_int64() <= 3)
        part.kind = static_cast<Part::Kind>(kind->get_int64());
    part.text = Content(text_at(in, "text"));
    part.media_type = text_at(in, "media_type");
    part.is_url = flag_at(in, "is_url");
    return part;
}

domain::Message decode_message(const json::object& in) {
    domain::Message message;
    const std::string role = text_at(in, "role");
    for (const Role one : roles) {
        if (to_string(one) == role) message.role = one;
    }
    for (const json::value& part : list_at(in, "parts")) {
        if (part.is_object()) message.parts.push_back(decode_part(part.get_object()));
    }
    message.name = text_at(in, "name");
    message.reasoning = Content(text_at(in, "reasoning"));
    message.tool_call_id = text_at(in, "tool_call_id");
    message.tool_failed = flag_at(in, "tool_failed");
    for (const json::value& value : list_at(in, "tool_calls")) {
        if (!value.is_object()) continue;
        domain::ToolCall call;
        call.id = text_at(value.get_object(), "id");
        call.name = text_at(value.get_object(), "name");
        call.arguments = Content(text_at(value.get_object(), "arguments"));
        message.tool_calls.push_back(std::move(call));
    }
    return message;
}

}  // namespace

std::string sealed_text(const Conversation& conversation) {
    json::array messages;
    for (const domain::Message& message : conversation.messages)
        messages.push_back(encode(message));
    json::object out;
    out["conversation"] = conversation.conversation;
    out["messages"] = std::move(messages);
    out["response"] = conversation.response;
    return to_text(json::value(std::move(out)));
}

Result<Conversation> conversation_from(std::string_view text) {
    const auto parsed = parse_json(text);
    if (!parsed || !parsed->is_object())
        return fail(ErrorCode::corrupt, "the stored conversation is damaged");
    const json::object& in = parsed->get_object();
    Conversation conversation;
    conversation.conversation = text_at(in, "conversation");
    conversation.response = text_at(in, "response");
    for (const json::value& message : list_at(in, "messages")) {
        if (message.is_object())
            conversation.messages.push_back(decode_message(message.get_object()));
    }
    return conversation;
}

domain::Message turn_of(const domain::Response& response) {
    domain::Message turn;
    turn.role = Role::assistant;
    if (!response.text.empty()) {
        Part part;
        part.text = response.text;
        turn.parts.push_back(std::move(part));
    }
    turn.reasoning = response.reasoning;
    turn.tool_calls = response.tool_calls;
    return turn;
}

}  // namespace molly::gateway
