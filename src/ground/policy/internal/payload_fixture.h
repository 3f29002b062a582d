#pragma once
// Requests with findings that the test itself sets, on their way to a third party.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "domain/texts.h"
#include "policy/policy_engine.h"
#include "policy/redactor.h"

namespace molly::policy::fixture {

/// What a detector would find: every occurrence of a text, as bytes of the text as it stands.
struct Known {
    domain::FindingKind kind;
    std::string text;
};

inline std::vector<domain::Finding> find_all(std::string_view text,
                                             const std::vector<Known>& known) {
    std::vector<domain::Finding> findings;
    for (const Known& one : known) {
        for (auto at = text.find(one.text); at != std::string_view::npos;
             at = text.find(one.text, at + one.text.size())) {
            findings.push_back({.kind = one.kind,
                                .checksum = domain::Checksum::none,
                                .begin = static_cast<std::uint32_t>(at),
                                .end = static_cast<std::uint32_t>(at + one.text.size())});
        }
    }
    return findings;
}

inline domain::AnnotatedRequest annotated(domain::Request request,
                                          const std::vector<Known>& known) {
    domain::AnnotatedRequest out;
    out.label.sensitivity = domain::Sensitivity::standard;
    domain::for_each_text(request, [&](const std::string& text, domain::TextForm) {
        out.findings.push_back(find_all(text, known));
    });
    out.detection_complete = true;
    out.request = std::move(request);
    return out;
}

inline std::shared_ptr<const domain::TargetSpec> third_party() {
    auto spec = std::make_shared<domain::TargetSpec>();
    spec->id = "cloud";
    spec->tier = domain::Tier::t3;
    return spec;
}

/// The payload, by a real permit.
inline Result<Redacted> redact(domain::AnnotatedRequest request, PlaceholderMap& map) {
    Rule rule;
    rule.name = "press";
    rule.permit_t3 = true;
    auto cleared = PolicyEngine({.rules = {rule}}).clear(std::move(request));
    if (!cleared) return fail(cleared.error());
    auto dispatch = Dispatch::to(third_party(), "",
                                 std::make_shared<const ClearedRequest>(*std::move(cleared)));
    if (!dispatch) return fail(dispatch.error());
    return Redactor::redact(*std::move(dispatch), map);
}

inline domain::Request saying(std::string text) {
    domain::Request request;
    request.id = "r1";
    request.messages.push_back(domain::text_message(domain::Role::user, std::move(text)));
    return request;
}

inline std::string said(const Redacted& redacted) {
    return redacted.request().messages.back().parts.front().text.text();
}

/// The whole answer restored in one piece.
inline std::string restored(const Redacted& redacted, std::string answer) {
    Restorer restorer = redacted.restorer();
    domain::Delta delta;
    delta.text = std::move(answer);
    delta.finish = domain::FinishReason::stop;
    return restorer.restore(std::move(delta)).text;
}

inline const std::string seed = "a seed of sixteen bytes at least";

}  // namespace molly::policy::fixture
