#include "pipeline/internal/adapter_label.h"

#include <utility>

#include <fmt/format.h>

namespace molly::pipeline {
namespace {

Error denied(const Error& why, domain::Sensitivity sensitivity) {
    return Error(
               ErrorCode::denied,
               fmt::format("the adapter learned from {} content, which would label the answer; {}",
                           to_string(sensitivity), why.message()))
        .reason(why.reason().empty() ? "adapter_not_permitted" : why.reason())
        .param("model")
        .italian(fmt::format("l'adattatore ha imparato da contenuti di classe {}, che "
                             "etichetterebbero la risposta; {}",
                             to_string(sensitivity), why.message_italian()));
}

}  // namespace

Result<std::optional<policy::Permit>> permit_with(const policy::PolicyEngine& policy,
                                                  const domain::AnnotatedRequest& annotated,
                                                  const domain::Label& of_adapter) {
    domain::Label joined = join(annotated.label, of_adapter);
    // Origins decide nothing: then the permit that the request has is the answer's as well.
    const bool same = joined.sensitivity == annotated.label.sensitivity &&
                      joined.residency == annotated.label.residency;
    if (same) return std::nullopt;
    domain::AnnotatedRequest answered = annotated;
    answered.label = std::move(joined);
    auto permit = policy.decide(answered);
    if (!permit) return fail(denied(permit.error(), of_adapter.sensitivity));
    return std::optional(*std::move(permit));
}

Result<void> check_label(const policy::Permit& permit, const domain::Label& of_adapter,
                         const domain::TargetSpec& target) {
    const auto allowed = permit.check(target);
    if (!allowed) return fail(denied(allowed.error(), of_adapter.sensitivity));
    return {};
}

Result<void> check_adapter(const policy::PolicyEngine& policy,
                           const domain::AnnotatedRequest& annotated,
                           const domain::Label& of_adapter, const domain::TargetSpec& target) {
    TRY(const auto permit, permit_with(policy, annotated, of_adapter));
    return permit ? check_label(*permit, of_adapter, target) : Result<void>();
}

void raise_by_adapter(domain::Trace& trace, const std::string& adapter,
                      const domain::Label& of_adapter) {
    domain::Label joined = join(trace.label, of_adapter);
    if (joined == trace.label) return;
    trace.signals.push_back({"adapter:" + adapter, of_adapter.sensitivity, 1});
    trace.label = std::move(joined);
}

}  // namespace molly::pipeline
