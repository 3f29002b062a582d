#pragma once
// Every text of a request, in one place, so that no rule can overlook a field. Pure.
#include <string>
#include <string_view>

#include "domain/request.h"

namespace molly::annotate {

/// Calls `visit(text, encoded)` for each text; `encoded` says that it is the base64 form of a file.
template <class Visit>
void for_each_text(const domain::Message& message, const Visit& visit) {
    for (const domain::Part& part : message.parts) {
        const bool bytes = part.kind != domain::Part::Kind::text && !part.is_url;
        // Images and audio are not readable here; a file may well be text.
        if (!bytes) visit(part.text.text(), false);
        if (bytes && part.kind == domain::Part::Kind::file) visit(part.text.text(), true);
        visit(part.media_type, false);
    }
    visit(message.name, false);
    visit(message.reasoning.text(), false);
    visit(message.tool_call_id, false);
    for (const domain::ToolCall& call : message.tool_calls) {
        visit(call.id, false);
        visit(call.name, false);
        visit(call.arguments.text(), false);
    }
}

template <class Visit>
void for_each_text(const domain::Request& request, const Visit& visit) {
    for (const domain::Message& message : request.messages)
        for_each_text(message, visit);
    visit(request.prompt.text(), false);
    visit(request.suffix.text(), false);
    for (const domain::Content& input : request.inputs)
        visit(input.text(), false);
    for (const domain::Tool& tool : request.tools) {
        visit(tool.name, false);
        visit(tool.description.text(), false);
        visit(tool.parameters.text(), false);
    }
    visit(request.tool_choice.name, false);
    visit(request.format.name, false);
    visit(request.format.schema.text(), false);
    for (const std::string& stop : request.sampling.stop)
        visit(stop, false);
    for (const auto& [key, value] : request.metadata) {
        visit(key, false);
        visit(value, false);
    }
    visit(request.user, false);
    visit(request.extensions.conversation, false);
    visit(request.extensions.purpose, false);
}

}  // namespace molly::annotate
