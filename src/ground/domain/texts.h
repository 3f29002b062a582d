#pragma once
// Every text of a request, in one place and one order, so that no rule, detector or redactor can
// overlook a field. Pure.
#include <string>
#include <utility>

#include "domain/request.h"

namespace molly::domain {

/// How the bytes of a text are to be read.
enum class TextForm : std::uint8_t {
    plain,
    json,    ///< JSON text: what a model reads has its escapes undone
    base64,  ///< the base64 form of a file's bytes
    token,   ///< a name or id with a syntax of its own, which a placeholder would break
};

namespace detail {

template <class Visit>
void visit_content(const Content& content, TextForm form, const Visit& visit) {
    visit(content.text(), form);
}

template <class Visit>
void visit_content(Content& content, TextForm form, const Visit& visit) {
    std::string text = std::move(content).take();
    visit(text, form);
    content = Content(std::move(text));
}

/// `Message` is domain::Message, const or not.
template <class Message, class Visit>
void visit_message(Message& message, const Visit& visit) {
    for (auto& part : message.parts) {
        const bool bytes = part.kind != Part::Kind::text && !part.is_url;
        // Images and audio are not readable here; a file may well be text.
        if (!bytes) visit_content(part.text, TextForm::plain, visit);
        if (bytes && part.kind == Part::Kind::file) {
            visit_content(part.text, TextForm::base64, visit);
        }
        visit(part.media_type, TextForm::token);
    }
    visit(message.name, TextForm::token);
    visit_content(message.reasoning, TextForm::plain, visit);
    visit(message.tool_call_id, TextForm::token);
    for (auto& call : message.tool_calls) {
        visit(call.id, TextForm::token);
        visit(call.name, TextForm::token);
        visit_content(call.arguments, TextForm::json, visit);
    }
}

template <class Request, class Visit>
void visit_request(Request& request, const Visit& visit) {
    for (auto& message : request.messages)
        visit_message(message, visit);
    visit_content(request.prompt, TextForm::plain, visit);
    visit_content(request.suffix, TextForm::plain, visit);
    for (auto& input : request.inputs)
        visit_content(input, TextForm::plain, visit);
    for (auto& tool : request.tools) {
        visit(tool.name, TextForm::token);
        visit_content(tool.description, TextForm::plain, visit);
        visit_content(tool.parameters, TextForm::json, visit);
    }
    visit(request.tool_choice.name, TextForm::token);
    visit(request.format.name, TextForm::token);
    visit_content(request.format.schema, TextForm::json, visit);
    for (auto& stop : request.sampling.stop)
        visit(stop, TextForm::plain);
    for (auto& [key, value] : request.metadata) {
        visit(key, TextForm::token);
        visit(value, TextForm::plain);
    }
    visit(request.user, TextForm::token);
    visit(request.extensions.conversation, TextForm::token);
    visit(request.extensions.purpose, TextForm::token);
}

}  // namespace detail

/// Calls `visit(text, form)` for each text, in an order that depends on the request's shape alone.
template <class Visit>
void for_each_text(const Request& request, const Visit& visit) {
    detail::visit_request(request, visit);
}

/// The same texts in the same order, to be changed in place: `visit(std::string&, form)`. Keys of
/// the metadata are constant.
template <class Visit>
void change_each_text(Request& request, const Visit& visit) {
    detail::visit_request(request, visit);
}

}  // namespace molly::domain
