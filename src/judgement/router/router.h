#pragma once
// Chooses among permitted targets: hard constraints, then score. Deciding is pure; what was seen of
// the targets is kept in Health. Safe from any thread.
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "domain/trace.h"
#include "policy/permit.h"
#include "router/estimates.h"
#include "router/roster.h"

namespace molly::router {

struct Options {
    domain::Mode mode = domain::Mode::balanced;
    std::uint32_t attempts_max = 4;      ///< per logical request
    std::uint32_t failures_to_open = 3;  ///< consecutive failures that open a target's circuit
    std::chrono::milliseconds open_for{10'000};  ///< then one trial request is let through
    std::chrono::milliseconds latency_half_life{
        600'000};  ///< of what was measured: a slow target that nobody asks is believed again
    std::chrono::milliseconds latency_reference{
        10'000};  ///< a request without a limit weighs latency against this
    domain::Money cost_reference{10'000'000};  ///< and cost against this
    std::map<std::string, std::string, std::less<>>
        aliases;  ///< model names of foreign apps; values: `auto` or a target
    std::map<std::string, std::string, std::less<>>
        model_names;  ///< what a target's model calls itself; a second name of the target
    std::string alias_default = "auto";  ///< for names that nobody registered and that start like a
                                         ///< known vendor's; empty: none
    bool named_falls_back = false;       ///< whether others may replace a target asked for by name
    /// Share of its likeliest domain below which a request is of no specialist's: it is
    /// everybody's.
    double concentration_min = 0.4;
    /// Specialists of this device that are asked together what is nobody's alone; below 2: none.
    std::uint32_t mixture_max = 3;
    /// Share of such a request that the specialists' domains must hold together.
    double mixture_share_min = 0.5;
    bool hedge = false;  ///< a second target is asked when the first has not begun to answer
    std::chrono::milliseconds hedge_after{0};  ///< so long; 0: its measured 95th percentile
    bool hedge_paid = false;                   ///< also where either of the two costs money
    /// What a verifier's number weighs among judged answers; a person's judgement weighs 1.
    double verifier_weight = 0.2;
    EstimateOptions estimates;
};

/// What a model name means.
struct Wanted {
    std::string target;  ///< empty: any (`auto`)
    std::string adapter;
    bool aliased = false;
};

/// How a target is at one moment.
struct Live {
    bool available = true;                     ///< circuit closed, or due for a trial
    std::chrono::milliseconds retry_after{0};  ///< when not available
    double first_token_ms = 0;                 ///< live estimate
    double token_ms = 0;                       ///< live estimate, per answer token
    std::uint32_t queue_depth = 0;
};

/// A roster at one moment, as one request finds it.
struct Moment {
    enum class Serving : std::uint8_t {
        no,      ///< the adapter is not there
        yes,     ///< it is
        denied,  ///< its label keeps it from this request
    };
    std::vector<Live> targets;                       ///< shape: [targets]
    std::vector<Serving> pairs;                      ///< shape: [pairs]
    std::map<std::size_t, std::string> denied = {};  ///< why, by pair
};

/// One target as the router sees it at one moment.
struct TargetView : Live {
    std::shared_ptr<const domain::TargetSpec> spec;
    std::vector<std::string> adapters;  ///< that it can serve
    /// Of them, those whose label keeps them from this request, and why.
    std::map<std::string, std::string, std::less<>> adapters_denied = {};
};

/// Targets in the order in which they will be tried. Never empty.
struct Plan {
    struct Step {
        std::shared_ptr<const domain::TargetSpec> target;
        std::string adapter;
        double confidence_min = 0;  ///< a less confident answer goes to the next tier; 0: none does
        domain::Money cost = {};    ///< estimate
        std::chrono::milliseconds latency{0};    ///< estimate
        domain::ConfidenceMeasure measure = {};  ///< of the confidence
        double quality = 0;  ///< what is believed of it; in a mixture: of its own fields
        double weight = 0;   ///< in the mixture: share of the request that is its; 0: not in it
    };
    std::vector<Step> steps;
    std::size_t mixture = 0;  ///< so many of the first steps are asked together; 0: none are
};

/// How likely a request is one for a specialist that was declared with example prompts.
struct SpecialistShare {
    std::string target;
    std::string adapter;
    double share = 0;
    double least = 0.5;  ///< from here on the request is the specialist's
};

/// The score in [0, 1] that this request's own text lets expect of somebody's answer.
struct Expectation {
    std::string target;
    std::string adapter;
    double score = 0;
};

/// An adapter's name without its version: what is declared or learned of it holds for the next.
std::string adapter_name(const std::string& adapter);

/// Whether any answer of this target may be asked for its confidence.
bool measures_confidence(const domain::TargetSpec& target) noexcept;

/// Resolves the name in a request. `known` are the targets' ids.
/// Errors: not_found (model_not_found), naming some that exist.
Result<Wanted> resolve_model(const std::string& model, const std::vector<std::string>& known,
                             const Options& options);

/// Whether the caller's key covers this target (case 24: asked again at every attempt). Errors:
/// denied (model_not_in_scope, tier_not_in_scope).
Result<void> authorise(const domain::Caller& caller, const domain::TargetSpec& target,
                       const std::string& adapter);

/// Pure, given what the estimates hold. Excludes what the permit, the key, the capabilities,
/// context, budget, latency limit or health rule out, and orders the rest: specialists on this
/// device whose estimate clears their threshold (in their field, or by their share where they were
/// declared with prompts), then, where no domain is likely, up to `mixture_max` specialists of this
/// device that share it, then by score (quality minus weighted shares of cost and latency). Without
/// `estimates` declared qualities count. What is `expected` of a pair stands in for its declared
/// quality, so it counts the less the more was judged. A target asked for by name is the only step,
/// one meant by an alias the first. `explanation` is filled also on errors. When nothing is left,
/// the error is that of the candidates that came furthest: denied (nothing permitted; says what
/// forbids it), not_found (adapter), unsupported, invalid_request (context_length_exceeded with
/// both numbers), exhausted (cost limit), deadline_exceeded (latency limit), unavailable (all are
/// down; with retry_after).
Result<Plan> plan(const policy::ClearedRequest& cleared, const Wanted& wanted,
                  const std::vector<TargetView>& targets, const Options& options,
                  domain::Decision& explanation, const Estimates* estimates = nullptr,
                  std::span<const SpecialistShare> shares = {},
                  std::span<const Expectation> expected = {});

/// The same for a request that names no adapter, among what was laid out before. Errors: as plan.
Result<Plan> plan(const policy::ClearedRequest& cleared, const Wanted& wanted, const Roster& roster,
                  const Moment& moment, const Options& options, domain::Decision& explanation,
                  std::span<const SpecialistShare> shares = {},
                  std::span<const Expectation> expected = {});

/// Live latency and circuit breaker per target.
class Health {
public:
    Health(const Options& options, Clock& clock);

    /// Fills availability and latency of a view: what was measured, and the more it is out of date
    /// the more what is declared.
    void look(TargetView& view) const;
    /// The same for many at once. shape: [targets] both
    void look(std::span<const std::shared_ptr<const domain::TargetSpec>> targets,
              std::span<Live> out) const;
    /// Takes the right to one trial when the circuit is half open; true when the attempt may go
    /// ahead.
    bool admit(const std::string& target);
    void succeeded(const std::string& target, std::chrono::microseconds first_token,
                   std::chrono::microseconds duration, std::uint32_t answer_tokens);
    /// `code` unavailable, upstream_failed, rate_limited and deadline_exceeded count against the
    /// target.
    void failed(const std::string& target, const Error& error);
    /// It had not begun to answer after so long, when it was given up: it is as slow at least.
    void lagged(const std::string& target, std::chrono::microseconds waited);
    /// The time within which 95 of 100 of its latest answers began; nothing until 20 were seen.
    std::optional<std::chrono::milliseconds> slow_first_token(const std::string& target) const;

private:
    static constexpr std::size_t latest_max = 64;
    struct State {
        std::vector<float> latest;  // times to the first token in ms, the oldest is overwritten
        double first_token_ms = 0;
        double token_ms = 0;
        MonoTime measured{};
        std::uint32_t samples = 0;
        std::uint32_t failures = 0;  // consecutive
        MonoTime open_until{};
        bool trial = false;
    };
    void saw_first_token(State& state, std::chrono::microseconds first_token);
    void look_at(const domain::TargetSpec& target, MonoTime now, Live& live) const;

    std::uint32_t failures_to_open_;
    std::chrono::milliseconds open_for_;
    std::chrono::milliseconds latency_half_life_;
    Clock& clock_;
    mutable std::mutex mutex_;
    std::unordered_map<std::string, State> states_;
};

}  // namespace molly::router
