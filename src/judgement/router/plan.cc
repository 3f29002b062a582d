#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "router/internal/weighed.h"

namespace molly::router {
namespace {

using domain::Candidate;
using domain::Money;
using std::chrono::milliseconds;

constexpr std::size_t told_max = 64;  // candidates in an explanation, best first

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

/// What holds of a target whatever its adapter.
struct Terms {
    Stage stage = Stage::admitted;
    Money cost;
    milliseconds latency{0};
    double penalty = 0;  // of the score
    bool preferred = false;
};

/// Plans one request; everything it reads outlives it.
class Planner {
public:
    Planner(const policy::ClearedRequest& cleared, const Wanted& wanted, const Options& options,
            std::span<const SpecialistShare> shares)
        : cleared_(cleared),
          request_(cleared.request()),
          needs_(cleared.annotated().capability),
          wanted_(wanted),
          adapter_(wanted.adapter.empty() ? request_.extensions.adapter : wanted.adapter),
          options_(options),
          shares_(shares),
          field_(needs_.field()),
          tiers_(cleared.permit().tiers()),
          mode_(request_.extensions.mode.value_or(options.mode)),
          weights_(weights_of(mode_)) {}

    domain::Mode mode() const noexcept { return mode_; }

    /// Adds the candidates of one target: the adapter asked for, or none and those of its
    /// specialists.
    void weigh(const TargetView& view, Estimates::Reading* estimates,
               std::vector<Weighed>& out) const {
        const Terms terms = terms_of(view);
        const std::span<const domain::Specialist> all = view.spec->specialists;
        if (estimates != nullptr) estimates->open(*view.spec);
        if (!adapter_.empty()) {
            const auto name = adapter_name(adapter_);
            const auto first = std::find_if(all.begin(), all.end(), [&](const auto& one) {
                return one.adapter == adapter_ || one.adapter == name;
            });
            const auto declared = all.subspan(static_cast<std::size_t>(first - all.begin()));
            add(view, terms, adapter_, same_adapter(declared), estimates, out);
            return;
        }
        std::size_t at = 0;
        const auto bare = same_adapter(all);
        const bool declared = !bare.empty() && bare.front().adapter.empty();
        add(view, terms, {}, declared ? bare : all.first(0), estimates, out);
        if (declared) at = bare.size();
        std::size_t served = 0;  // both lists are in one order, as a rule
        while (at < all.size()) {
            const auto group = same_adapter(all.subspan(at));
            at += group.size();
            const std::string& adapter = group.front().adapter;
            if (!serves(view, adapter, served)) continue;
            add(view, terms, adapter, group, estimates, out);
        }
    }

    Plan::Step step(const Weighed& one) const {
        const auto* declared = one.declared;
        return {.target = one.view->spec,
                .adapter = std::string(one.adapter),
                .confidence_min = declared != nullptr && declared->confidence_min > 0
                                      ? declared->confidence_min
                                      : one.view->spec->confidence_min,
                .cost = one.cost,
                .latency = one.latency};
    }

    Candidate told(const Weighed& one) const {
        Candidate candidate;
        candidate.target = one.view->spec->id;
        candidate.adapter = one.adapter;
        candidate.tier = one.view->spec->tier;
        candidate.excluded_by = words(one);
        candidate.quality = one.belief.lower;
        candidate.mean = one.belief.mean;
        candidate.evidence = one.belief.evidence;
        candidate.specialist = one.specialist;
        candidate.cost = one.cost;
        candidate.latency = one.latency;
        candidate.score = one.score;
        return candidate;
    }

    /// Steps of a preferred target come first, then specialists, then the higher score; ties go to
    /// the less exposed.
    static bool before(const Weighed& a, const Weighed& b) noexcept {
        if (a.rank != b.rank) return a.rank < b.rank;
        if (a.score != b.score) return a.score > b.score;
        const domain::TargetSpec& left = *a.view->spec;
        const domain::TargetSpec& right = *b.view->spec;
        if (left.tier != right.tier) return left.tier < right.tier;
        const int ids = left.id.compare(right.id);
        return ids != 0 ? ids < 0 : a.adapter < b.adapter;
    }

    /// What keeps a candidate out, in words; empty when nothing does.
    std::string words(const Weighed& one) const {
        switch (one.stage) {
            case Stage::other_asked:
                return "the request asks for target " + wanted_.target;
            case Stage::permit:
                return refusal(one);
            case Stage::adapter:
                return "it does not serve the adapter that is asked for";
            case Stage::capability:
                return lacks(*one.view->spec).empty() ? beyond_words(*one.declared)
                                                      : std::string(lacks(*one.view->spec));
            case Stage::context:
                return fmt::format("the request has about {} tokens and {} fit its context",
                                   needs_.context_tokens,
                                   one.view->spec->capabilities.context_tokens_max);
            case Stage::cost:
                return fmt::format("it would cost about {} and at most {} is allowed",
                                   to_string(one.cost), to_string(*request_.extensions.cost_max));
            case Stage::latency:
                return fmt::format("it would take about {} ms and at most {} ms are allowed",
                                   one.latency.count(), request_.extensions.latency_max->count());
            case Stage::health:
                return fmt::format("it has failed; the next trial is in {} ms",
                                   one.view->retry_after.count());
            case Stage::admitted:
                break;
        }
        return {};
    }

private:
    bool pinned() const noexcept {
        return !wanted_.target.empty() && !wanted_.aliased && !options_.named_falls_back;
    }

    static std::span<const domain::Specialist> same_adapter(
        std::span<const domain::Specialist> from) noexcept {
        std::size_t count = from.empty() ? 0 : 1;
        while (count < from.size() && from[count].adapter == from[0].adapter)
            ++count;
        return from.first(count);
    }

    static bool serves(const TargetView& view, const std::string& adapter, std::size_t& at) {
        if (at < view.adapters.size() && view.adapters[at] == adapter) {
            ++at;
            return true;
        }
        return std::find(view.adapters.begin(), view.adapters.end(), adapter) !=
               view.adapters.end();
    }

    Terms terms_of(const TargetView& view) const {
        const domain::TargetSpec& spec = *view.spec;
        Terms terms;
        domain::Usage usage;
        usage.prompt_tokens = needs_.prompt_tokens;
        usage.answer_tokens = needs_.answer_tokens;
        terms.cost = cost_of(usage, spec.prices);
        terms.latency = latency(view);
        const Money cost_limit = request_.extensions.cost_max.value_or(options_.cost_reference);
        const milliseconds latency_limit =
            request_.extensions.latency_max.value_or(options_.latency_reference);
        const auto share = [](std::int64_t part, std::int64_t whole) {
            return static_cast<double>(part) /
                   static_cast<double>(std::max<std::int64_t>(whole, 1));
        };
        terms.penalty = weights_.cost * share(terms.cost.nano, cost_limit.nano) +
                        weights_.latency * share(terms.latency.count(), latency_limit.count());
        terms.preferred = !wanted_.target.empty() && spec.id == wanted_.target;
        terms.stage = stage_of(view, terms);
        return terms;
    }

    Stage stage_of(const TargetView& view, const Terms& terms) const {
        const domain::TargetSpec& spec = *view.spec;
        if (pinned() && !terms.preferred) return Stage::other_asked;
        if (!tiers_.contains(spec.tier) || !cleared_.permit().check_form(spec))
            return Stage::permit;
        if (!lacks(spec).empty()) return Stage::capability;
        if (needs_.context_tokens > spec.capabilities.context_tokens_max && !request_.truncate)
            return Stage::context;
        const auto& cost_max = request_.extensions.cost_max;
        if (cost_max && terms.cost > *cost_max) return Stage::cost;
        const auto& latency_max = request_.extensions.latency_max;
        if (latency_max && terms.latency > *latency_max) return Stage::latency;
        return view.available ? Stage::admitted : Stage::health;
    }

    void add(const TargetView& view, const Terms& terms, std::string_view adapter,
             std::span<const domain::Specialist> declared, Estimates::Reading* estimates,
             std::vector<Weighed>& out) const {
        Weighed& one = out.emplace_back();
        one.view = &view;
        one.adapter = adapter;
        one.cost = terms.cost;
        one.latency = terms.latency;
        one.stage = terms.stage;
        const bool by_prompts = choose(view, declared, one);
        const domain::Specialist* only = by_prompts ? one.declared : nullptr;
        if (estimates != nullptr) {
            one.belief = estimates->at(adapter, declared, only);
        } else {
            one.belief.lower = one.belief.mean =
                only != nullptr ? only->quality : prior_in(*view.spec, declared, field_);
        }
        one.score = one.belief.lower - terms.penalty;
        look_closer(view, one);
        // Only on this device, and only for what it was declared for.
        one.specialist = one.declared != nullptr && needs_.classified &&
                         view.spec->tier == domain::Tier::t0 && (by_prompts || !spread()) &&
                         one.belief.lower >= one.declared->threshold;
        one.rank =
            static_cast<std::uint8_t>((one.stage != Stage::admitted ? 4U : 0U) |
                                      (terms.preferred ? 0U : 2U) | (one.specialist ? 0U : 1U));
    }

    /// The declaration under which the candidate serves: that of the request's domain, or any where
    /// example prompts say that the request is its. True when they do.
    bool choose(const TargetView& view, std::span<const domain::Specialist> declared,
                Weighed& one) const {
        if (declared.empty()) return false;
        bool by_prompts = false;
        for (const SpecialistShare& share : shares_) {
            if (share.adapter != one.adapter || share.target != view.spec->id) continue;
            if (share.share < share.least) return false;
            by_prompts = true;
            one.declared = &declared.front();
        }
        for (const domain::Specialist& each : declared) {
            if (each.field == field_) one.declared = &each;
        }
        return by_prompts;
    }

    /// Obstacles that are the adapter's own.
    void look_closer(const TargetView& view, Weighed& one) const {
        const bool scoped =
            !request_.caller.models.empty() || !request_.caller.tiers.contains(view.spec->tier);
        if (one.stage > Stage::permit && scoped &&
            !authorise(request_.caller, *view.spec, std::string(one.adapter)))
            one.stage = Stage::permit;
        if (one.stage > Stage::permit && view.adapters_denied.contains(one.adapter))
            one.stage = Stage::permit;
        if (one.stage > Stage::adapter && !adapter_.empty() &&
            std::find(view.adapters.begin(), view.adapters.end(), adapter_) == view.adapters.end())
            one.stage = Stage::adapter;
        if (one.stage > Stage::capability && one.declared != nullptr && adapter_.empty() &&
            beyond(*one.declared))
            one.stage = Stage::capability;
    }

    /// Whether the request may be of several domains, none of them likely.
    bool spread() const noexcept {
        return needs_.fields[static_cast<std::size_t>(field_)] < options_.concentration_min;
    }

    /// Whether a declared specialist must not be asked this.
    bool beyond(const domain::Specialist& one) const noexcept {
        return (one.prompt_tokens_max > 0 && needs_.prompt_tokens > one.prompt_tokens_max) ||
               static_cast<double>(needs_.difficulty) > one.difficulty_max;
    }
    std::string beyond_words(const domain::Specialist& one) const {
        if (one.prompt_tokens_max > 0 && needs_.prompt_tokens > one.prompt_tokens_max) {
            return fmt::format("the request has about {} tokens and it is declared for {} at most",
                               needs_.prompt_tokens, one.prompt_tokens_max);
        }
        return fmt::format("the difficulty is {:.2f} and it is declared for {:.2f} at most",
                           needs_.difficulty, one.difficulty_max);
    }

    std::string refusal(const Weighed& one) const {
        if (auto allowed = cleared_.permit().check_form(*one.view->spec); !allowed)
            return allowed.error().message();
        auto covered = authorise(request_.caller, *one.view->spec, std::string(one.adapter));
        if (!covered) return covered.error().message();
        const auto denied = one.view->adapters_denied.find(one.adapter);
        return denied == one.view->adapters_denied.end() ? std::string() : denied->second;
    }

    milliseconds latency(const TargetView& view) const {
        const domain::TargetSpec& spec = *view.spec;
        const double first = view.first_token_ms > 0
                                 ? view.first_token_ms
                                 : static_cast<double>(spec.first_token.count());
        const double token =
            view.token_ms > 0 ? view.token_ms : 1000.0 / std::max(spec.tokens_per_second, 0.001);
        const double total = first * (1.0 + view.queue_depth) + token * needs_.answer_tokens;
        return milliseconds(static_cast<std::int64_t>(total));
    }

    /// What the target cannot do, in words; empty when it can do all.
    std::string_view lacks(const domain::TargetSpec& spec) const {
        const domain::Capabilities& can = spec.capabilities;
        const bool embed = request_.operation == domain::Operation::embed;
        const std::array<std::pair<bool, std::string_view>, 6> wants = {
            {{embed && !can.embed, "it makes no embeddings"},
             {!embed && !can.chat, "it does not chat"},
             {needs_.tools && !can.tools, "it does not support tools"},
             {needs_.json_schema && !can.json_schema, "it does not support output schemas"},
             {needs_.images && !can.images, "it does not read images"},
             {needs_.logprobs && !can.logprobs, "it gives no log-probabilities"}}};
        for (const auto& [lacking, what] : wants) {
            if (lacking) return what;
        }
        return {};
    }

    const policy::ClearedRequest& cleared_;
    const domain::Request& request_;
    const domain::CapabilityProfile& needs_;
    const Wanted& wanted_;
    const std::string& adapter_;
    const Options& options_;
    std::span<const SpecialistShare> shares_;
    domain::Field field_;
    domain::TierSet tiers_;
    domain::Mode mode_;
    Weights weights_;
};

/// The words of some of the candidates that came as far as `stage`.
std::string all_words(const Planner& planner, const std::vector<Weighed>& weighed, Stage stage) {
    std::string words;
    std::size_t told = 0;
    for (const Weighed& one : weighed) {
        if (one.stage != stage || told++ >= told_max) continue;
        words += fmt::format("{}{}: {}", words.empty() ? "" : "; ", one.view->spec->id,
                             planner.words(one));
    }
    return words;
}

}  // namespace

std::string adapter_name(const std::string& adapter) {
    return adapter.substr(0, adapter.find('@'));
}

bool measures_confidence(const domain::TargetSpec& target) noexcept {
    return target.confidence_min > 0 ||
           std::any_of(target.specialists.begin(), target.specialists.end(),
                       [](const domain::Specialist& one) { return one.confidence_min > 0; });
}

Result<Plan> plan(const policy::ClearedRequest& cleared, const Wanted& wanted,
                  const std::vector<TargetView>& targets, const Options& options,
                  domain::Decision& explanation, const Estimates* estimates,
                  std::span<const SpecialistShare> shares) {
    const Planner planner(cleared, wanted, options, shares);
    std::vector<Weighed> weighed;
    weighed.reserve(std::max<std::size_t>(64, targets.size()));
    {
        std::optional<Estimates::Reading> reading;
        if (estimates != nullptr) reading.emplace(*estimates, cleared.annotated().capability);
        for (const TargetView& view : targets)
            planner.weigh(view, reading ? &*reading : nullptr, weighed);
    }
    const std::size_t steps_max = std::max(1U, options.attempts_max);
    const std::size_t told = std::min(weighed.size(), std::max(told_max, steps_max));
    std::vector<const Weighed*> order(weighed.size());
    std::transform(weighed.begin(), weighed.end(), order.begin(),
                   [](const Weighed& one) { return &one; });
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(told), order.end(),
                      [](const Weighed* a, const Weighed* b) { return Planner::before(*a, *b); });
    order.resize(told);
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
    explanation.candidates.reserve(told);
    for (const Weighed* one : order)
        explanation.candidates.push_back(planner.told(*one));

    Plan plan;
    for (const Weighed* one : order) {
        if (one->stage != Stage::admitted || plan.steps.size() >= steps_max) break;
        plan.steps.push_back(planner.step(*one));
    }
    if (!plan.steps.empty()) return plan;
    Stage furthest = Stage::other_asked;
    for (const Weighed& one : weighed)
        furthest = std::max(furthest, one.stage);
    return fail(nothing_left(cleared, weighed, furthest, all_words(planner, weighed, furthest)));
}

}  // namespace molly::router
