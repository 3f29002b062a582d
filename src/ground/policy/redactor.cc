#include "policy/redactor.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/utf8.h"
#include "domain/texts.h"
#include "policy/internal/edits.h"

namespace molly::policy {
namespace {

using domain::Part;
using domain::Request;
using domain::TextForm;
using internal::Edit;

/// The texts that no payload holds: what is found in them does not leave.
std::vector<const std::string*> kept_back(const Request& request) {
    std::vector<const std::string*> texts = {&request.user, &request.extensions.conversation,
                                             &request.extensions.purpose};
    for (const auto& [key, value] : request.metadata) {
        texts.push_back(&key);
        texts.push_back(&value);
    }
    return texts;
}

bool one_of(const std::vector<const std::string*>& texts, const std::string& text) {
    return std::find(texts.begin(), texts.end(), &text) != texts.end();
}

bool holds_bytes(const Request& request) {
    const auto bytes = [](const Part& part) { return part.kind != Part::Kind::text; };
    return std::any_of(request.messages.begin(), request.messages.end(),
                       [&](const domain::Message& message) {
                           return std::any_of(message.parts.begin(), message.parts.end(), bytes);
                       });
}

Error not_redactable(const domain::TargetSpec& target, T3Closed closed) {
    return Error(ErrorCode::denied,
                 fmt::format("the redacted form that target {} may have cannot be made ({})",
                             target.id, to_string(closed)))
        .reason(std::string(to_string(closed)))
        .italian(fmt::format("non si può fare la forma oscurata che la destinazione {} può avere "
                             "({})",
                             target.id, to_string(closed)));
}

void apply(std::string& text, const std::vector<Edit>& edits, PlaceholderMap::Session& session,
           domain::Redactions& redactions) {
    std::string out;
    out.reserve(text.size());
    std::size_t done = 0;
    for (const Edit& edit : edits) {
        out.append(text, done, edit.begin - done);
        if (edit.quoted) out += '"';
        out += session.issue(edit.kind, edit.value);
        if (edit.quoted) out += '"';
        done = edit.end;
        ++redactions[edit.kind];
    }
    out.append(text, done);
    text = std::move(out);
}

/// What the third party need not know to answer.
void strip(Request& request) {
    request.metadata.clear();
    request.user.clear();
    request.extensions = {};
    request.caller = {};
    request.model.clear();
}

}  // namespace

Redacted::Redacted(std::shared_ptr<const domain::TargetSpec> target, std::string adapter,
                   Request request, const Permit& whole,
                   std::shared_ptr<const Placeholders> placeholders, domain::Redactions redactions)
    : target_(std::move(target)),
      adapter_(std::move(adapter)),
      request_(std::move(request)),
      permit_(whole, *target_),
      placeholders_(std::move(placeholders)),
      redactions_(std::move(redactions)) {}

Restorer Redacted::restorer() const {
    using Kind = domain::OutputFormat::Kind;
    const Kind format = request_.format.kind;
    return {placeholders_, format == Kind::json_object || format == Kind::json_schema};
}

T3Closed Redactor::obstacle(const domain::AnnotatedRequest& annotated) {
    const Request& request = annotated.request;
    const auto& findings = annotated.findings;
    // What no detector can read is named before what one did not.
    if (holds_bytes(request)) return T3Closed::modality;
    if (!annotated.detection_complete) return T3Closed::detection;
    const std::vector<const std::string*> unsent = kept_back(request);
    std::size_t texts = 0;
    bool editable = true;
    domain::for_each_text(request, [&](const std::string& text, TextForm form) {
        const std::size_t index = texts++;
        if (index >= findings.size() || findings[index].empty() || one_of(unsent, text)) return;
        editable = editable && internal::edits_of(text, form, findings[index]).has_value();
    });
    if (texts != findings.size()) return T3Closed::detection;
    return editable ? T3Closed::open : T3Closed::token;
}

Result<Redacted> Redactor::redact(Dispatch dispatch, PlaceholderMap& map) {
    const domain::AnnotatedRequest& annotated = dispatch.cleared_->annotated();
    const domain::TargetSpec& target = dispatch.target();
    if (target.tier != domain::Tier::t3) return fail(not_redactable(target, T3Closed::kept));
    if (const T3Closed closed = obstacle(annotated); closed != T3Closed::open)
        return fail(not_redactable(target, closed));
    Request request = annotated.request;
    const std::vector<const std::string*> unsent = kept_back(request);
    std::vector<std::string_view> texts;
    bool readable = true;
    domain::for_each_text(annotated.request, [&](const std::string& text, TextForm) {
        texts.emplace_back(text);
        readable = readable && utf8_valid(text);
    });
    if (!readable) return fail(not_redactable(target, T3Closed::detection));
    PlaceholderMap::Session session(map);
    session.avoid(texts);
    domain::Redactions redactions;
    std::size_t index = 0;
    const auto replace = [&](auto& text, TextForm form) {
        const auto& findings = annotated.findings[index++];
        if (findings.empty() || one_of(unsent, text)) return;
        // Keys of the metadata are constant, and are never sent.
        if constexpr (!std::is_const_v<std::remove_reference_t<decltype(text)>>)
            apply(text, *internal::edits_of(text, form, findings), session, redactions);
    };
    domain::change_each_text(request, replace);
    strip(request);
    auto placeholders = session.take();
    if (!placeholders->empty()) {
        request.sampling.logprobs = false;
        request.sampling.top_logprobs = 0;
    }
    return Redacted(dispatch.target_, dispatch.adapter_, std::move(request), dispatch.permit(),
                    std::move(placeholders), std::move(redactions));
}

}  // namespace molly::policy
