#pragma once
// What is recorded of a request: never its content. Values.
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "domain/capability.h"
#include "domain/finding.h"
#include "domain/label.h"
#include "domain/request.h"
#include "domain/response.h"
#include "domain/target.h"

namespace molly::domain {

/// Why content has the label that it has: one entry per signal, never the text that matched.
struct Signal {
    std::string source;  ///< `key:office`, `rule:payroll`, `caller`, `conversation`, `default`
    Sensitivity sensitivity = Sensitivity::private_;
    std::uint32_t count = 1;
};

/// A request with what was found out about it, before any decision.
struct AnnotatedRequest {
    Request request;
    CapabilityProfile capability;
    Label label;
    std::vector<Signal> signals;
    bool declassified = false;  ///< the caller declared a class below the default, as its key may
    /// What was found in each text, in the order of for_each_text; spans in bytes of the text as it
    /// stands, ascending and disjoint. shape: [texts][findings]
    std::vector<std::vector<Finding>> findings;
    /// Every configured detector looked at every text. While false, nothing may go to T3.
    bool detection_complete = false;
    std::string conversation;  ///< the name under which its label sticks; empty: none
    WallTime time{};           ///< of the decision, for rules about hours; the epoch: unknown
};

/// One considered (target, adapter) and what became of it.
struct Candidate {
    std::string target;
    std::string adapter;
    Tier tier = Tier::t0;
    std::string excluded_by;               ///< empty: admitted
    double quality = 0;                    ///< in [0, 1]: the lower bound that competes
    double mean = 0;                       ///< of the estimate behind it
    double evidence = 0;                   ///< its weight, in judged answers; 0: as declared
    bool specialist = false;               ///< it serves this field first
    double weight = 0;                     ///< in the mixture that is asked first; 0: not in it
    Money cost;                            ///< estimate
    std::chrono::milliseconds latency{0};  ///< estimate
    double score = 0;
};

/// How the target was chosen.
struct Decision {
    std::string rule;  ///< the policy rule that decided
    TierSet permitted;
    Residency residency;
    Mode mode = Mode::balanced;
    std::vector<Candidate> candidates;  ///< best first, excluded last
    /// Why T3 is closed to this request, a token; empty: open to its redacted form, or no target
    /// is T3.
    std::string t3_closed = {};
};

/// Why an attempt was made.
enum class Cause : std::uint8_t {
    step,          ///< it was next in the plan
    mixture,       ///< several specialists were asked together
    sample,        ///< whether the same place says the same again
    verification,  ///< it said what another's answer is worth
    hedge,         ///< the one before it was slow
};
std::string_view to_string(Cause cause) noexcept;

/// One attempt at one target.
struct Attempt {
    std::string target;
    std::string adapter;
    Tier tier = Tier::t0;
    std::string endpoint;             ///< `https://host:port`; empty on this device
    bool peer_authenticated = false;  ///< by pin or certificate
    std::uint64_t bytes_sent = 0;
    std::uint64_t bytes_received = 0;
    std::optional<ErrorCode> failed;  ///< empty: it answered
    std::string failure;              ///< the reason, without content
    Usage usage;
    Money cost;
    std::chrono::microseconds first_token{0};
    std::chrono::microseconds duration{0};
    Redactions redactions = {};             ///< what was replaced before it left
    std::optional<double> confidence = {};  ///< in its answer, in [0, 1]; empty: not measured
    ConfidenceSource confidence_from = ConfidenceSource::logprobs;  ///< where that comes from
    bool rejected = false;  ///< another answer than its own was told
    Cause cause = Cause::step;
    std::uint32_t drafted = 0;   ///< tokens that this device drafted for it
    std::uint32_t accepted = 0;  ///< of them, those that came
};

enum class Outcome : std::uint8_t {
    answered,
    refused,  ///< by policy, before any attempt
    failed,
    cancelled,
    truncated,  ///< the upstream died after the first bytes went to the caller
};
std::string_view to_string(Outcome outcome) noexcept;

/// A person's act that lowered the label of a conversation.
struct Declassification {
    Sensitivity from = Sensitivity::private_;
    Sensitivity to = Sensitivity::private_;
    std::string reason;  ///< in the person's words, free of identifiers
};

struct Trace {
    std::string id;  ///< the request's
    WallTime time;
    std::string dialect;
    Operation operation = Operation::chat;
    bool stream = false;
    std::string member;
    std::string key_id;
    std::string app;
    std::string model_asked;
    std::string conversation;  ///< explicit id or keyed hash
    Label label;
    std::vector<Signal> signals;
    bool declassified = false;
    CapabilityProfile capability;
    std::string rules_hash;  ///< of the label and policy rules that decided; empty: not known
    Decision decision;
    std::vector<Attempt> attempts;
    std::string target;  ///< that answered; empty: none
    std::string adapter;
    std::string model;
    std::string model_hash;
    Usage usage;
    Money cost;
    std::chrono::microseconds first_token{0};
    std::chrono::microseconds duration{0};
    Outcome outcome = Outcome::answered;
    std::optional<FinishReason> finish;
    std::string failure;                           ///< `code: reason`, without content
    std::string caveat = {};                       ///< a token: why the answer may be poor
    std::optional<Declassification> lowered = {};  ///< the trace is of this act, not of a request
};

}  // namespace molly::domain
