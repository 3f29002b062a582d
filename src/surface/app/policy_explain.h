#pragma once
// Why a request may go where it may, and what would have to change for each place that it may not
// reach. Decided by the real annotator, policy and router, with nothing attempted. Pure.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/config.h"
#include "domain/trace.h"

namespace molly::app {

/// One sentence in both languages.
struct Said {
    std::string english;
    std::string italian;
};

/// One target in the light of one request.
struct Reach {
    std::string target;
    domain::Tier tier = domain::Tier::t0;
    std::string excluded_by;  ///< empty: it is in the plan
    bool by_policy = false;   ///< excluded by label, key or rules, and not by what it can do
    /// Each: changes that together open the target; none: no change of these kinds does.
    std::vector<std::vector<Said>> changes;
};

struct PolicyExplanation {
    domain::Label label;
    std::vector<domain::Signal> signals;
    bool declassified = false;
    domain::Decision decision;
    std::optional<Error> refused;
    std::vector<Reach> targets;
};

/// A request of the OpenAI dialect (chat, completions or embeddings, by its members); `molly` is
/// its extension. Errors: invalid_request.
Result<domain::Request> request_from(std::string_view body);

/// Errors: invalid_request (rules that do not compile); denied (class_below_key).
Result<PolicyExplanation> explain_policy(const Config& config, domain::Request request);

}  // namespace molly::app
