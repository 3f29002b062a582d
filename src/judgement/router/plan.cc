#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "router/router.h"

namespace molly::router {
namespace {

using domain::Candidate;
using domain::Money;
using std::chrono::milliseconds;

/// How far a candidate came; when none is left, the furthest one's obstacle is the error.
enum class Stage : std::uint8_t {
    other_asked,
    permit,
    adapter,
    capability,
    context,
    cost,
    latency,
    health,
    admitted
};

/// Why a candidate is out.
struct Obstacle {
    Stage stage = Stage::admitted;
    std::string words;
};

struct Weights {
    double cost = 0;
    double latency = 0;
};

Weights weights_of(domain::Mode mode) noexcept {
    switch (mode) {
        case domain::Mode::balanced:
            return {.cost = 0.3, .latency = 0.3};
        case domain::Mode::quality:
            return {.cost = 0.05, .latency = 0.05};
        case domain::Mode::fast:
            return {.cost = 0.1, .latency = 0.9};
        case domain::Mode::cheap:
            return {.cost = 0.9, .latency = 0.1};
    }
    return {};
}

/// Plans one request; everything it reads outlives it.
class Planner {
public:
    Planner(const policy::ClearedRequest& cleared, const Wanted& wanted, const Options& options,
            const Estimates* estimates)
        : cleared_(cleared),
          request_(cleared.request()),
          profile_(cleared.annotated().capability),
          wanted_(wanted),
          adapter_(wanted.adapter.empty() ? request_.extensions.adapter : wanted.adapter),
          options_(options),
          estimates_(estimates),
          mode_(request_.extensions.mode.value_or(options.mode)) {}

    domain::Mode mode() const noexcept { return mode_; }
    bool pinned() const noexcept {
        return !wanted_.target.empty() && !wanted_.aliased && !options_.named_falls_back;
    }

    /// The adapters of a target that may serve: the one asked for, or none and its specialists.
    std::vector<std::string> adapters_of(const TargetView& view) const {
        std::vector<std::string> names = {adapter_};
        if (!adapter_.empty()) return names;
        for (const domain::Specialist& one : view.spec->specialists) {
            const bool served = std::find(view.adapters.begin(), view.adapters.end(),
                                          one.adapter) != view.adapters.end();
            const bool known = std::find(names.begin(), names.end(), one.adapter) != names.end();
            if (served && !known) names.push_back(one.adapter);
        }
        return names;
    }

    Candidate candidate(const TargetView& view, const std::string& adapter) const {
        const domain::TargetSpec& spec = *view.spec;
        Candidate candidate;
        candidate.target = spec.id;
        candidate.adapter = adapter;
        candidate.tier = spec.tier;
        candidate.quality = candidate.mean = prior_of(spec, adapter, profile_.field());
        if (estimates_ != nullptr) {
            const Belief belief = estimates_->at(spec, adapter, profile_);
            candidate.quality = belief.lower;
            candidate.mean = belief.mean;
            candidate.evidence = belief.evidence;
        }
        candidate.specialist = serves_first(spec, candidate);
        domain::Usage usage;
        usage.prompt_tokens = profile_.prompt_tokens;
        usage.answer_tokens = profile_.answer_tokens;
        candidate.cost = cost_of(usage, spec.prices);
        candidate.latency = latency(view);
        candidate.score = score(candidate);
        return candidate;
    }

    Obstacle obstacle(const TargetView& view, const Candidate& candidate) const {
        const domain::TargetSpec& spec = *view.spec;
        if (pinned() && spec.id != wanted_.target)
            return {Stage::other_asked, "the request asks for target " + wanted_.target};
        if (auto allowed = cleared_.permit().check_form(spec); !allowed)
            return {Stage::permit, allowed.error().message()};
        if (auto covered = authorise(request_.caller, spec, candidate.adapter); !covered)
            return {Stage::permit, covered.error().message()};
        const auto& adapters = view.adapters;
        if (!candidate.adapter.empty() &&
            std::find(adapters.begin(), adapters.end(), candidate.adapter) == adapters.end()) {
            return {Stage::adapter, "it does not serve the adapter that is asked for"};
        }
        if (std::string beyond = beyond_rules(spec, candidate); !beyond.empty())
            return {Stage::capability, std::move(beyond)};
        if (std::string lacking = lacks(spec); !lacking.empty())
            return {Stage::capability, std::move(lacking)};
        return limit(view, candidate);
    }

    /// Steps of a preferred target come first, then specialists, then the higher score; ties go to
    /// the less exposed.
    bool before(const Candidate& a, const Candidate& b) const {
        const auto rank = [&](const Candidate& c) {
            const bool preferred = !wanted_.target.empty() && c.target == wanted_.target;
            return std::make_tuple(!c.excluded_by.empty(), !preferred, !c.specialist, -c.score,
                                   c.tier, std::string_view(c.target), std::string_view(c.adapter));
        };
        return rank(a) < rank(b);
    }

private:
    /// The declaration under which this candidate serves the request's field, or null.
    const domain::Specialist* declared(const domain::TargetSpec& spec,
                                       const std::string& adapter) const {
        for (const domain::Specialist& one : spec.specialists) {
            if (one.adapter == adapter && one.field == profile_.field()) return &one;
        }
        return nullptr;
    }

    /// Only on this device, and only for what it was declared for.
    bool serves_first(const domain::TargetSpec& spec, const Candidate& candidate) const {
        const domain::Specialist* one = declared(spec, candidate.adapter);
        return one != nullptr && profile_.classified && spec.tier == domain::Tier::t0 &&
               candidate.quality >= one->threshold;
    }

    /// What a declared specialist must not be asked, in words; empty when nothing forbids it.
    std::string beyond_rules(const domain::TargetSpec& spec, const Candidate& candidate) const {
        const domain::Specialist* one = declared(spec, candidate.adapter);
        if (one == nullptr || !adapter_.empty()) return {};
        if (one->prompt_tokens_max > 0 && profile_.prompt_tokens > one->prompt_tokens_max) {
            return fmt::format("the request has about {} tokens and it is declared for {} at most",
                               profile_.prompt_tokens, one->prompt_tokens_max);
        }
        if (profile_.difficulty > one->difficulty_max) {
            return fmt::format("the difficulty is {:.2f} and it is declared for {:.2f} at most",
                               profile_.difficulty, one->difficulty_max);
        }
        return {};
    }

    milliseconds latency(const TargetView& view) const {
        const domain::TargetSpec& spec = *view.spec;
        const double first = view.first_token_ms > 0
                                 ? view.first_token_ms
                                 : static_cast<double>(spec.first_token.count());
        const double token =
            view.token_ms > 0 ? view.token_ms : 1000.0 / std::max(spec.tokens_per_second, 0.001);
        const double total = first * (1.0 + view.queue_depth) + token * profile_.answer_tokens;
        return milliseconds(static_cast<std::int64_t>(total));
    }

    double score(const Candidate& candidate) const {
        const Weights weights = weights_of(mode_);
        const Money cost_limit = request_.extensions.cost_max.value_or(options_.cost_reference);
        const milliseconds latency_limit =
            request_.extensions.latency_max.value_or(options_.latency_reference);
        const auto share = [](std::int64_t part, std::int64_t whole) {
            return static_cast<double>(part) /
                   static_cast<double>(std::max<std::int64_t>(whole, 1));
        };
        return candidate.quality - weights.cost * share(candidate.cost.nano, cost_limit.nano) -
               weights.latency * share(candidate.latency.count(), latency_limit.count());
    }

    /// What the target cannot do, in words; empty when it can do all.
    std::string lacks(const domain::TargetSpec& spec) const {
        const domain::Capabilities& can = spec.capabilities;
        const bool embed = request_.operation == domain::Operation::embed;
        const std::array<std::pair<bool, std::string_view>, 6> needs = {
            {{embed && !can.embed, "it makes no embeddings"},
             {!embed && !can.chat, "it does not chat"},
             {profile_.tools && !can.tools, "it does not support tools"},
             {profile_.json_schema && !can.json_schema, "it does not support output schemas"},
             {profile_.images && !can.images, "it does not read images"},
             {profile_.logprobs && !can.logprobs, "it gives no log-probabilities"}}};
        for (const auto& [lacking, words] : needs) {
            if (lacking) return std::string(words);
        }
        return {};
    }

    Obstacle limit(const TargetView& view, const Candidate& candidate) const {
        const std::uint32_t fits = view.spec->capabilities.context_tokens_max;
        const std::uint32_t needed = profile_.context_tokens;
        if (needed > fits && !request_.truncate) {
            return {Stage::context, fmt::format("the request has about {} tokens and {} fit its "
                                                "context",
                                                needed, fits)};
        }
        const auto& cost_max = request_.extensions.cost_max;
        if (cost_max && candidate.cost > *cost_max) {
            return {Stage::cost, fmt::format("it would cost about {} and at most {} is allowed",
                                             to_string(candidate.cost), to_string(*cost_max))};
        }
        const auto& latency_max = request_.extensions.latency_max;
        if (latency_max && candidate.latency > *latency_max) {
            return {Stage::latency, fmt::format("it would take about {} ms and at most {} ms are "
                                                "allowed",
                                                candidate.latency.count(), latency_max->count())};
        }
        if (!view.available) {
            return {Stage::health, fmt::format("it has failed; the next trial is in {} ms",
                                               view.retry_after.count())};
        }
        return {};
    }

    const policy::ClearedRequest& cleared_;
    const domain::Request& request_;
    const domain::CapabilityProfile& profile_;
    const Wanted& wanted_;
    const std::string& adapter_;
    const Options& options_;
    const Estimates* estimates_;
    domain::Mode mode_;
};

/// A candidate with what became of it.
struct Weighed {
    Candidate candidate;
    const TargetView* view = nullptr;
    Stage stage = Stage::admitted;
};

std::string all_words(const std::vector<Weighed>& weighed, Stage stage) {
    std::string words;
    for (const Weighed& one : weighed) {
        if (one.stage != stage) continue;
        words += fmt::format("{}{}: {}", words.empty() ? "" : "; ", one.candidate.target,
                             one.candidate.excluded_by);
    }
    return words;
}

Error denied(const policy::ClearedRequest& cleared, const std::string& words) {
    const policy::Permit& permit = cleared.permit();
    return Error(ErrorCode::denied,
                 fmt::format("no target is permitted for this content: rule {} permits {}, places: "
                             "{}. {}. Declare a target there, or a class, residency or key that "
                             "permits one of these",
                             permit.rule(), to_string(permit.tiers()),
                             to_string(permit.residency()), words))
        .reason("no_target_permitted")
        .italian(fmt::format("nessuna destinazione è permessa per questo contenuto: la regola {} "
                             "permette {}, luoghi: {}. {}. Dichiarare una destinazione lì, oppure "
                             "una classe, residenza o chiave che ne permetta una",
                             permit.rule(), to_string(permit.tiers()),
                             to_string(permit.residency()), words));
}

Error context_exceeded(const policy::ClearedRequest& cleared, const std::vector<Weighed>& weighed) {
    std::uint32_t largest = 0;
    for (const Weighed& one : weighed) {
        if (one.stage == Stage::context)
            largest = std::max(largest, one.view->spec->capabilities.context_tokens_max);
    }
    const std::uint32_t needed = cleared.annotated().capability.context_tokens;
    return Error(
               ErrorCode::invalid_request,
               fmt::format("the request has about {} tokens and the largest permitted context has "
                           "{}; shorten it, or set truncation",
                           needed, largest))
        .reason("context_length_exceeded")
        .param("messages")
        .italian(fmt::format("la richiesta ha circa {} token e il contesto più grande permesso ne "
                             "ha {}; accorciarla, o permettere il troncamento",
                             needed, largest));
}

Error all_down(const std::vector<Weighed>& weighed, const std::string& words) {
    milliseconds soonest = milliseconds::max();
    for (const Weighed& one : weighed) {
        if (one.stage == Stage::health) soonest = std::min(soonest, one.view->retry_after);
    }
    return Error(ErrorCode::unavailable, fmt::format("every permitted target is down: {}", words))
        .reason("targets_down")
        .retry_after(
            std::max(std::chrono::seconds(1), std::chrono::ceil<std::chrono::seconds>(soonest)))
        .italian(fmt::format("ogni destinazione permessa è fuori servizio: {}", words));
}

Error nothing_left(const policy::ClearedRequest& cleared, const std::vector<Weighed>& weighed) {
    Stage furthest = Stage::other_asked;
    for (const Weighed& one : weighed)
        furthest = std::max(furthest, one.stage);
    const std::string words = all_words(weighed, furthest);
    const auto plain = [&](ErrorCode code, std::string_view english, std::string_view italian) {
        return Error(code, fmt::format("{}: {}", english, words))
            .italian(fmt::format("{}: {}", italian, words));
    };
    switch (furthest) {
        case Stage::permit:
            return denied(cleared, words);
        case Stage::adapter:
            return plain(ErrorCode::not_found, "no permitted target has this adapter",
                         "nessuna destinazione permessa ha questo adattatore")
                .reason("model_not_found")
                .param("model");
        case Stage::capability:
            return plain(ErrorCode::unsupported, "no permitted target can do this",
                         "nessuna destinazione permessa sa farlo");
        case Stage::context:
            return context_exceeded(cleared, weighed);
        case Stage::cost:
            return plain(ErrorCode::exhausted, "every permitted target is over the cost limit",
                         "ogni destinazione permessa supera il limite di costo")
                .reason("cost_limit");
        case Stage::latency:
            return plain(ErrorCode::deadline_exceeded,
                         "every permitted target is over the latency limit",
                         "ogni destinazione permessa supera il limite di latenza")
                .reason("latency_limit");
        case Stage::health:
            return all_down(weighed, words);
        case Stage::other_asked:
        case Stage::admitted:
            break;
    }
    return Error(ErrorCode::unavailable,
                 "no target is configured; declare one in [[targets]], or a model for the engine")
        .italian(
            "nessuna destinazione è configurata; dichiararne una in [[targets]], o un modello "
            "per il motore");
}

}  // namespace

Result<void> authorise(const domain::Caller& caller, const domain::TargetSpec& target,
                       const std::string& adapter) {
    if (!caller.tiers.contains(target.tier)) {
        return fail(Error(ErrorCode::denied,
                          fmt::format("key {} reaches {}; target {} is {}", caller.key_id,
                                      to_string(caller.tiers), target.id, to_string(target.tier)))
                        .reason("tier_not_in_scope")
                        .italian(fmt::format("la chiave {} raggiunge {}; la destinazione {} è {}",
                                             caller.key_id, to_string(caller.tiers), target.id,
                                             to_string(target.tier))));
    }
    const std::vector<std::string>& models = caller.models;
    // An adapter's name stands for all of its versions.
    const std::string name = adapter.substr(0, adapter.find('@'));
    const auto covers = [&](const std::string& model) {
        return model == target.id || (!adapter.empty() && (model == target.id + "/" + adapter ||
                                                           model == target.id + "/" + name));
    };
    if (models.empty() || std::any_of(models.begin(), models.end(), covers)) return {};
    return fail(Error(ErrorCode::denied,
                      fmt::format("key {} may use only {}", caller.key_id, fmt::join(models, ", ")))
                    .reason("model_not_in_scope")
                    .italian(fmt::format("la chiave {} può usare solo {}", caller.key_id,
                                         fmt::join(models, ", "))));
}

Result<Plan> plan(const policy::ClearedRequest& cleared, const Wanted& wanted,
                  const std::vector<TargetView>& targets, const Options& options,
                  domain::Decision& explanation, const Estimates* estimates) {
    const Planner planner(cleared, wanted, options, estimates);
    std::vector<Weighed> weighed;
    weighed.reserve(targets.size());
    for (const TargetView& view : targets) {
        for (const std::string& adapter : planner.adapters_of(view)) {
            Candidate candidate = planner.candidate(view, adapter);
            Obstacle obstacle = planner.obstacle(view, candidate);
            candidate.excluded_by = std::move(obstacle.words);
            weighed.push_back({std::move(candidate), &view, obstacle.stage});
        }
    }
    std::sort(weighed.begin(), weighed.end(), [&](const Weighed& a, const Weighed& b) {
        return planner.before(a.candidate, b.candidate);
    });
    const policy::Permit& permit = cleared.permit();
    explanation.rule = permit.rule();
    explanation.permitted = permit.tiers();
    explanation.residency = permit.residency();
    explanation.mode = planner.mode();
    const bool outside = std::any_of(targets.begin(), targets.end(), [](const TargetView& view) {
        return view.spec->tier == domain::Tier::t3;
    });
    explanation.t3_closed = outside ? to_string(permit.t3()) : "";
    explanation.candidates.clear();
    for (const Weighed& one : weighed)
        explanation.candidates.push_back(one.candidate);

    Plan plan;
    const std::size_t steps_max = std::max(1U, options.attempts_max);
    for (const Weighed& one : weighed) {
        if (one.stage != Stage::admitted || plan.steps.size() >= steps_max) break;
        plan.steps.push_back({one.view->spec, one.candidate.adapter});
    }
    if (plan.steps.empty()) return fail(nothing_left(cleared, weighed));
    return plan;
}

}  // namespace molly::router
