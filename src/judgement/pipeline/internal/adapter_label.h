#pragma once
// An adapter was made of labelled content, and what it says carries that label. Pure.
#include <optional>
#include <string>

#include "base/result.h"
#include "domain/trace.h"
#include "policy/policy_engine.h"

namespace molly::pipeline {

/// What the rules permit an answer to the request by an adapter of this label; nothing where that
/// is what the request's own permit says. Errors: denied, naming the rule.
Result<std::optional<policy::Permit>> permit_with(const policy::PolicyEngine& policy,
                                                  const domain::AnnotatedRequest& annotated,
                                                  const domain::Label& of_adapter);
/// Whether such a permit lets `target` answer. Errors: denied.
Result<void> check_label(const policy::Permit& permit, const domain::Label& of_adapter,
                         const domain::TargetSpec& target);
/// Whether the rules let the request be answered at `target` under its own label joined with the
/// adapter's. Errors: denied, naming the rule and what forbids it.
Result<void> check_adapter(const policy::PolicyEngine& policy,
                           const domain::AnnotatedRequest& annotated,
                           const domain::Label& of_adapter, const domain::TargetSpec& target);

/// Joins the adapter's label to that of the answer, and says so among the signals.
void raise_by_adapter(domain::Trace& trace, const std::string& adapter,
                      const domain::Label& of_adapter);

}  // namespace molly::pipeline
