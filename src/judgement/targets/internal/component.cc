#include "targets/internal/component.h"

#include <algorithm>

namespace molly::targets {

domain::Request as_component(const domain::Request& request, const adapters::Component& component) {
    domain::Request out = request;
    const bool instructed = std::ranges::any_of(
        request.messages, [](const auto& message) { return message.role == domain::Role::system; });
    if (component.empty() || request.operation != domain::Operation::chat || instructed ||
        !request.tools.empty() || request.format.kind != domain::OutputFormat::Kind::text)
        return out;
    if (!component.instructions.empty()) {
        out.messages.insert(out.messages.begin(),
                            domain::text_message(domain::Role::system, component.instructions));
    }
    if (!component.schema.empty()) {
        out.format.kind = domain::OutputFormat::Kind::json_schema;
        out.format.name = "answer";
        out.format.schema = domain::Content(component.schema);
        out.format.strict = true;
    }
    return out;
}

}  // namespace molly::targets
