#pragma once
// The whole life of a request, on one screen: label, clear, plan, dispatch with fallback, record.
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "annotate/annotate.h"
#include "annotate/expectations.h"
#include "annotate/fingerprint.h"
#include "annotate/specialists.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/result.h"
#include "base/task.h"
#include "domain/response.h"
#include "domain/trace.h"
#include "members/members.h"
#include "pipeline/presence.h"
#include "policy/policy_engine.h"
#include "router/confidence.h"
#include "router/router.h"
#include "store/store.h"
#include "targets/target.h"

namespace molly::pipeline {

struct Options {
    std::chrono::milliseconds request_timeout{300'000};  ///< from arrival to the last byte
    /// Conversations with third parties whose placeholders are remembered at once.
    std::size_t placeholder_maps_max = 1024;
    bool fingerprints = true;  ///< labelled text is known again wherever it comes back
    domain::Sensitivity fingerprints_above =
        domain::Sensitivity::private_;  ///< the general default
};

/// What the edge needs before the first byte of an answer: headers are sent from it.
struct Served {
    std::string receipt;
    std::string target;
    std::string adapter;
    domain::Tier tier = domain::Tier::t0;
    std::string model;     ///< as the answer names it
    bool aliased = false;  ///< the asked name was an alias
};

/// Receives an answer at the edge.
class AnswerSink {
public:
    virtual ~AnswerSink() = default;
    /// Once, before the first Delta: this target's answer is the one. Errors: cancelled.
    virtual Task<Result<void>> begin(const Served& served) = 0;
    virtual Task<Result<void>> write(const domain::Delta& delta) = 0;
};

/// The end of a request whose answer went to the sink.
struct Answered {
    Served served;
    domain::Response response;
    std::shared_ptr<const domain::Trace> trace;
};

/// Label and policy rules that were declared together. Immutable: a request is decided by the rules
/// of one moment, and keeps what it was cleared with.
struct Rules {
    std::shared_ptr<const annotate::Annotator> annotator;
    std::shared_ptr<const policy::PolicyEngine> policy;
    std::string hash;  ///< for traces and receipts
};

/// Everything that the pipeline works with; it owns none of it.
struct Parts {
    const annotate::Annotator& annotator;
    const policy::PolicyEngine& policy;
    store::Store& store;
    members::Members& members;
    router::Health& health;
    const router::Options& routing;
    std::vector<targets::Target*> targets;
    Metrics& metrics;
    Clock& clock;
    std::string conversation_key;            ///< secret, for the keyed hash of first turns
    router::Estimates* estimates = nullptr;  ///< null: declared qualities count, nothing is learned
    const annotate::Specialists* specialists = nullptr;  ///< that were declared with prompts
    /// What each target's answer to a request is expected to be worth; null: nothing is.
    const annotate::Expectations* expectations = nullptr;
    router::Confidences* confidences =
        nullptr;  ///< null: log-probabilities are taken at their word
};

struct Prepared;
struct Outcome;
class Counts;
class LoweredConversations;
class PlaceholderMaps;

class Pipeline {
public:
    Pipeline(Parts parts, Options options);
    Pipeline(const Pipeline&) = delete;
    Pipeline& operator=(const Pipeline&) = delete;
    Pipeline(Pipeline&&) = delete;
    Pipeline& operator=(Pipeline&&) = delete;
    ~Pipeline();

    /// Runs one request for `key`. Trace and receipt are committed before it returns, whatever the
    /// outcome, and before the edge may send the last byte; a departure is committed before bytes
    /// leave this device. Errors: those of the first refusal, or of the last attempt (with the
    /// attempts named).
    Task<Result<Answered>> run(domain::Request request, const members::Key& key, AnswerSink& sink);

    /// Decides by these rules from the next request on, instead of those of Parts. Safe from any
    /// thread.
    void use(Rules rules);
    std::shared_ptr<const Rules> rules() const noexcept { return rules_.load(); }

    /// The decision without any attempt, for `explain`. Errors: as run.
    Result<domain::Decision> explain(domain::Request request, const members::Key& key) const;
    /// The same, with all that was found out about the request before. Errors: as run.
    Result<domain::Trace> rehearse(domain::Request request) const;

    /// Lowers the class that sticks to a conversation (`member/id`, as traces name it) and records
    /// the act in a trace and a receipt, whose id it gives. What later turns hold raises it again.
    /// Errors: denied (declassify_not_in_scope: the key may not, not so far, or not for this
    /// member), not_found, conflict (it is as low already), invalid_request (the reason is missing,
    /// too long, or holds identifiers).
    Task<Result<domain::Trace>> declassify(domain::Declassification act, std::string conversation,
                                           const members::Key& by);

    /// A judgement of the answer behind `trace`, in [0, 1]: the router's estimates learn from it at
    /// once and are kept. Errors: invalid_request (nothing answered; the score), conflict (it was
    /// judged already), unsupported (nothing learns here).
    Task<Result<void>> judge(domain::Trace trace, double score);
    /// Adds what an evaluation or an imported table says. Errors: unsupported, exhausted.
    Task<Result<void>> learn(std::vector<router::EstimateRow> seen);
    /// Adds judged answers with their confidence. Errors: as learn.
    Task<Result<void>> learn_confidence(std::vector<router::SureRow> seen);
    /// What judged answers say of each target's confidence.
    std::vector<router::SureRow> confidences() const;
    /// Where to draw the line for answers that are good at least as often as `precision`, for each
    /// meter of which something was judged, over all fields and for each.
    struct Line {
        router::Meter meter;
        std::optional<domain::Field> field;  ///< nothing: all
        double evidence = 0;
        std::optional<router::Threshold> threshold;  ///< nothing: too little was judged, or too bad
    };
    std::vector<Line> lines(double precision) const;
    /// Everything that was learned of targets.
    std::vector<router::EstimateRow> estimates() const;

    /// Whether third parties may get anything: `open`, or what is missing first: `no_target`,
    /// `no_permit`, `no_detection`.
    std::string_view third_parties() const;

    const std::vector<targets::Target*>& targets() const noexcept { return parts_.targets; }
    /// The targets as the router sees them now, with `adapter` where they have it; without one,
    /// with those of their declared specialists.
    std::vector<router::TargetView> views(const std::string& adapter = {}) const;

private:
    enum class Memory : std::uint8_t { keep, leave };
    Result<Prepared> place(domain::Request request, domain::Trace& trace, Memory memory) const;
    std::vector<router::TargetView> views_for(const policy::ClearedRequest& cleared,
                                              const std::string& adapter,
                                              const policy::PolicyEngine& policy) const;
    router::Moment moment_for(const policy::ClearedRequest& cleared,
                              const policy::PolicyEngine& policy) const;
    Result<router::Plan> plan_for(const policy::ClearedRequest& cleared,
                                  const router::Wanted& wanted, const policy::PolicyEngine& policy,
                                  domain::Decision& explanation) const;
    std::vector<router::SpecialistShare> shares_of(const domain::Request& request) const;
    std::vector<router::Expectation> expected_of(const domain::Request& request) const;
    Result<void> reserve(Prepared& prepared, const members::Key& key, domain::Trace& trace) const;
    bool detects() const;
    Error tell_adapters(Error refusal, const std::string& adapter,
                        const domain::Caller& caller) const;
    void label_answer(domain::Trace& trace, const domain::Request& asked,
                      const domain::Response& response) const;
    std::vector<store::EstimateRow> learn_verified(const domain::Trace& trace) const;
    Task<Result<Answered>> record(domain::Trace trace, MonoTime arrived, Prepared* prepared,
                                  Result<Outcome> outcome);

    Parts parts_;
    Options options_;
    std::vector<std::string> names_;  // of the targets
    router::Roster roster_;           // of the same
    Presence presence_;               // of its adapters
    bool measures_confidence_ = false;
    std::atomic<std::shared_ptr<const Rules>> rules_;
    annotate::Fingerprinter fingerprinter_;
    std::unique_ptr<LoweredConversations> lowered_;
    std::unique_ptr<Counts> counts_;
    std::unique_ptr<PlaceholderMaps> maps_;
};

}  // namespace molly::pipeline
