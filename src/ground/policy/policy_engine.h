#pragma once
// Decides where content may be processed. Pure: no I/O, clock or threads; safe from any thread.
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "domain/trace.h"
#include "policy/hours.h"
#include "policy/permit.h"

namespace molly::policy {

/// One declared rule. Empty conditions match everything; the rule applies when all of them match.
struct Rule {
    std::string name;
    std::vector<std::string> members;
    std::vector<std::string> apps;
    std::vector<std::string> tags;
    std::vector<std::string> purposes;
    std::optional<domain::Sensitivity> at_most;   ///< applies to this class and lower ones
    std::optional<domain::Sensitivity> at_least;  ///< applies to this class and higher ones
    std::optional<domain::TierSet> tiers;         ///< restricts to these
    std::optional<domain::Residency> residency;   ///< restricts to these
    bool permit_t3 = false;  ///< explicit permit for T3, redacted; only for standard and public
    /// Names as traces show them, `member/id`: an id alone is anybody's word.
    std::vector<std::string> conversations = {};
    std::vector<domain::Sensitivity> classes = {};
    /// When it holds. While the time is unknown, restrictions hold and permits do not.
    std::optional<Hours> hours = {};
    /// Of the target: the rule is about targets there only. One that declares nothing is restricted
    /// all the same and gets no permit.
    std::vector<std::string> jurisdictions = {};
    /// Only standard means something: the redacted form of private content counts as that.
    std::optional<domain::Sensitivity> redacted_counts_as = {};
};

struct Options {
    std::vector<Rule> rules;
};

/// What is not content of a request but leaves or is stored all the same: a download request, a
/// metrics push.
struct ArtifactLabel {
    std::string purpose;  ///< `models.pull`
    domain::Label label;
};

class PolicyEngine {
public:
    explicit PolicyEngine(Options options);

    /// Welds a request to the permit that its label, its key and the rules allow.
    /// Errors: denied, when no tier is left or the residency set is empty.
    Result<ClearedRequest> clear(domain::AnnotatedRequest annotated) const;

    /// The permit alone, for explanations and tests of rules. Errors: as clear.
    Result<Permit> decide(const domain::AnnotatedRequest& annotated) const;

    /// Whether any rule may open T3.
    bool permits_t3() const noexcept;

    /// For what holds no request content. Errors: denied.
    Result<Permit> clear_artifact(const ArtifactLabel& artifact) const;

private:
    domain::Sensitivity redacted_class(const domain::AnnotatedRequest& annotated) const;
    std::string open_t3(const domain::AnnotatedRequest& annotated, domain::TierSet left,
                        Permit& permit) const;

    Options options_;
};

}  // namespace molly::policy
