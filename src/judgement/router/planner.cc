#include "router/internal/planner.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace molly::router {

using domain::Candidate;
using domain::Money;
using std::chrono::milliseconds;

const std::string& adapter_of(const policy::ClearedRequest& cleared, const Wanted& wanted) {
    return wanted.adapter.empty() ? cleared.request().extensions.adapter : wanted.adapter;
}

Planner::Weights Planner::weights_of(domain::Mode mode) noexcept {
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

Planner::Planner(const policy::ClearedRequest& cleared, const Wanted& wanted,
                 const Options& options, const Roster& roster, const Moment& moment,
                 std::span<const SpecialistShare> shares, std::span<const Expectation> expected)
    : cleared_(cleared),
      request_(cleared.request()),
      needs_(cleared.annotated().capability),
      wanted_(wanted),
      adapter_(adapter_of(cleared, wanted)),
      options_(options),
      roster_(roster),
      moment_(moment),
      field_(static_cast<std::size_t>(needs_.field())),
      tiers_(cleared.permit().tiers()),
      mode_(request_.extensions.mode.value_or(options.mode)),
      weights_(weights_of(mode_)),
      spread_(needs_.fields[field_] < options.concentration_min) {
    read_beliefs();
    read_prompts(shares);
    read_expectations(expected);
    read_terms();
}

std::vector<Weighed> Planner::weigh() const {
    std::vector<Weighed> out;
    out.reserve(roster_.pairs().size());
    for (std::size_t target = 0; target < terms_.size(); ++target)
        weigh_target(target, out);
    return out;
}

Plan::Step Planner::step(const Weighed& one) const {
    const Declared declared = declared_of(one.pair);
    const bool own = declared.one != nullptr && declared.one->confidence_min > 0;
    const Terms& terms = terms_of(one);
    return {.target = roster_.targets()[pair_of(one).target],
            .adapter = pair_of(one).adapter,
            .confidence_min = own ? declared.one->confidence_min : spec_of(one).confidence_min,
            .cost = terms.cost,
            .latency = terms.latency,
            .measure = own ? declared.one->measure : spec_of(one).measure,
            .quality = one.weight > 0 ? part_of(one).quality : belief_of(one.pair, declared).lower,
            .weight = one.weight};
}

domain::Candidate Planner::told(const Weighed& one) const {
    const Belief belief = belief_of(one.pair, declared_of(one.pair));
    const Terms& terms = terms_of(one);
    Candidate candidate;
    candidate.target = spec_of(one).id;
    candidate.adapter = pair_of(one).adapter;
    candidate.tier = spec_of(one).tier;
    candidate.excluded_by = words(one);
    candidate.quality = belief.lower;
    candidate.mean = belief.mean;
    candidate.evidence = belief.evidence;
    candidate.specialist = one.specialist;
    candidate.weight = one.weight;
    candidate.cost = terms.cost;
    candidate.latency = terms.latency;
    candidate.score = one.score;
    return candidate;
}

std::string Planner::words(const Weighed& one) const {
    const Terms& terms = terms_of(one);
    switch (one.stage) {
        case Stage::other_asked:
            return "the request asks for target " + wanted_.target;
        case Stage::permit:
            return refusal(one);
        case Stage::adapter:
            return "it does not serve the adapter that is asked for";
        case Stage::capability:
            return able(spec_of(one).capabilities) ? beyond_words(*declared_of(one.pair).one)
                                                   : std::string(lacks(spec_of(one).capabilities));
        case Stage::context:
            return fmt::format("the request has about {} tokens and {} fit its context",
                               needs_.context_tokens, spec_of(one).capabilities.context_tokens_max);
        case Stage::cost:
            return fmt::format("it would cost about {} and at most {} is allowed",
                               to_string(terms.cost), to_string(*request_.extensions.cost_max));
        case Stage::latency:
            return fmt::format("it would take about {} ms and at most {} ms are allowed",
                               terms.latency.count(), request_.extensions.latency_max->count());
        case Stage::health:
            return fmt::format("it has failed; the next trial is in {} ms",
                               moment_.targets[pair_of(one).target].retry_after.count());
        case Stage::admitted:
            break;
    }
    return {};
}

void Planner::read_beliefs() {
    const auto band = static_cast<std::size_t>(needs_.band());
    mix_ = fields_of(needs_);
    for (std::size_t i = 0; i < mix_.count; ++i) {
        columns_[i] = roster_.beliefs(mix_.parts[i].field, band);
        beliefs_[i] = columns_[i]->data();
    }
}

void Planner::read_prompts(std::span<const SpecialistShare> shares) {
    if (shares.empty()) return;
    prompted_.resize(roster_.pairs().size(), Prompted::nothing);
    for (const SpecialistShare& share : shares) {
        const std::size_t pair = roster_.find(share.target, share.adapter);
        if (pair == prompted_.size()) continue;
        prompted_[pair] = share.share < share.least ? Prompted::not_its : Prompted::its;
    }
}

void Planner::read_expectations(std::span<const Expectation> expected) {
    if (expected.empty()) return;
    expected_.resize(roster_.pairs().size(), -1);
    for (const Expectation& one : expected) {
        const std::size_t pair = roster_.find(one.target, one.adapter);
        if (pair < expected_.size()) expected_[pair] = one.score;
    }
}

/// Puts what is expected of this request in the place of what was declared for all of them.
void Planner::expect(std::size_t pair, Belief& belief) const {
    if (expected_[pair] < 0) return;
    double declared = 0;
    for (const FieldMix::Part& part : mix_.all())
        declared += part.share * roster_.prior(roster_.pairs()[pair], part.field);
    const double weight = options_.estimates.prior_weight;
    const double moved = (expected_[pair] - declared) * weight / (weight + belief.evidence);
    belief.mean = std::clamp(belief.mean + moved, 0.0, 1.0);
    belief.lower = std::clamp(belief.lower + moved, 0.0, 1.0);
}

void Planner::read_terms() {
    const Money cost_limit = request_.extensions.cost_max.value_or(options_.cost_reference);
    const milliseconds latency_limit =
        request_.extensions.latency_max.value_or(options_.latency_reference);
    const auto part_of = [](double weight, std::int64_t whole) {
        return weight / static_cast<double>(std::max<std::int64_t>(whole, 1));
    };
    per_cost_ = part_of(weights_.cost, cost_limit.nano);
    per_latency_ = part_of(weights_.latency, latency_limit.count());
    for (const domain::TargetSpec* place : roster_.places()) {
        permitted_.push_back(tiers_.contains(place->tier) &&
                             cleared_.permit().check_form(*place).has_value());
    }
    terms_.reserve(roster_.targets().size());
    for (std::size_t target = 0; target < roster_.targets().size(); ++target)
        terms_.push_back(terms_of(target));
}

Planner::Terms Planner::terms_of(std::size_t target) const {
    const Roster::Facts& facts = roster_.facts()[target];
    const Live& live = moment_.targets[target];
    Terms terms;
    domain::Usage usage;
    usage.prompt_tokens = needs_.prompt_tokens;
    usage.answer_tokens = needs_.answer_tokens;
    terms.cost = cost_of(usage, facts.prices);
    terms.latency = latency(facts, live);
    terms.penalty = per_cost_ * static_cast<double>(terms.cost.nano) +
                    per_latency_ * static_cast<double>(terms.latency.count());
    terms.preferred = !wanted_.target.empty() && roster_.targets()[target]->id == wanted_.target;
    terms.scoped = !request_.caller.models.empty() || !request_.caller.tiers.contains(facts.tier);
    terms.stage = stage_of(facts, live, terms);
    return terms;
}

Stage Planner::stage_of(const Roster::Facts& facts, const Live& live, const Terms& terms) const {
    if (pinned() && !terms.preferred) return Stage::other_asked;
    if (!permitted_[facts.place]) return Stage::permit;
    if (!able(facts.capabilities)) return Stage::capability;
    if (needs_.context_tokens > facts.capabilities.context_tokens_max && !request_.truncate)
        return Stage::context;
    const auto& cost_max = request_.extensions.cost_max;
    if (cost_max && terms.cost > *cost_max) return Stage::cost;
    const auto& latency_max = request_.extensions.latency_max;
    if (latency_max && terms.latency > *latency_max) return Stage::latency;
    return live.available ? Stage::admitted : Stage::health;
}

/// Adds the pairs of one target that are candidates.
void Planner::weigh_target(std::size_t target, std::vector<Weighed>& out) const {
    const Terms& terms = terms_[target];
    const bool here = needs_.classified && roster_.facts()[target].tier == domain::Tier::t0;
    const std::size_t end = roster_.first_of(target + 1);
    for (std::size_t pair = roster_.first_of(target); pair < end; ++pair) {
        if (moment_.pairs[pair] == Moment::Serving::no && adapter_.empty()) continue;
        const Declared declared = declared_of(pair);
        const double quality = lower_of(pair, declared);
        Weighed& one = out.emplace_back();
        one.pair = static_cast<std::uint32_t>(pair);
        one.score = quality - terms.penalty;
        const bool plain =
            !terms.scoped && declared.one == nullptr && moment_.pairs[pair] == Moment::Serving::yes;
        one.stage = plain ? terms.stage : stage_at(pair, declared, terms);
        // Only on this device, and only for what it was declared for.
        one.specialist = here && declared.one != nullptr && (declared.by_prompts || !spread_) &&
                         quality >= declared.one->threshold;
        one.rank =
            static_cast<std::uint8_t>((one.stage != Stage::admitted ? 4U : 0U) |
                                      (terms.preferred ? 0U : 2U) | (one.specialist ? 0U : 1U));
    }
}

/// The declaration under which a pair serves: that of the request's domain, or any where
/// example prompts say that the request is its.
Planner::Declared Planner::declared_of(std::size_t at) const noexcept {
    const Roster::Pair& pair = roster_.pairs()[at];
    if (pair.declared.empty()) return {};
    const std::uint8_t which = pair.of_field[field_];
    const domain::Specialist* by_field = which == Roster::nobody ? nullptr : &pair.declared[which];
    const Prompted prompted = prompted_.empty() ? Prompted::nothing : prompted_[at];
    if (prompted == Prompted::nothing) return {.one = by_field, .by_prompts = false};
    if (prompted == Prompted::not_its) return {};
    return {.one = by_field != nullptr ? by_field : pair.declared.data(), .by_prompts = true};
}

Belief Planner::belief_of(std::size_t pair, const Declared& declared) const {
    if (declared.by_prompts) return roster_.belief(pair, needs_, declared.one->quality);
    Belief belief;
    for (std::size_t i = 0; i < mix_.count; ++i) {
        const Belief& part = beliefs_[i][pair];
        belief.mean += mix_.parts[i].share * part.mean;
        belief.lower += mix_.parts[i].share * part.lower;
        belief.evidence += mix_.parts[i].share * part.evidence;
    }
    if (!expected_.empty()) expect(pair, belief);
    return belief;
}

/// What competes of that.
double Planner::lower_of(std::size_t pair, const Declared& declared) const {
    if (declared.by_prompts || !expected_.empty()) return belief_of(pair, declared).lower;
    double lower = 0;
    for (std::size_t i = 0; i < mix_.count; ++i)
        lower += mix_.parts[i].share * beliefs_[i][pair].lower;
    return lower;
}

/// The target's obstacle, or one that is the adapter's own.
Stage Planner::stage_at(std::size_t at, const Declared& declared, const Terms& terms) const {
    const Roster::Pair& pair = roster_.pairs()[at];
    const Moment::Serving serving = moment_.pairs[at];
    Stage stage = terms.stage;
    if (stage > Stage::permit && terms.scoped &&
        !covers(request_.caller, roster_.spec_of(pair), pair.adapter))
        stage = Stage::permit;
    if (stage > Stage::permit && serving == Moment::Serving::denied) stage = Stage::permit;
    if (stage > Stage::adapter && serving == Moment::Serving::no) stage = Stage::adapter;
    if (stage > Stage::capability && declared.one != nullptr && adapter_.empty() &&
        beyond(*declared.one))
        stage = Stage::capability;
    return stage;
}

/// Whether a declared specialist must not be asked this.
bool Planner::beyond(const domain::Specialist& one) const noexcept {
    return (one.prompt_tokens_max > 0 && needs_.prompt_tokens > one.prompt_tokens_max) ||
           static_cast<double>(needs_.difficulty) > one.difficulty_max;
}
std::string Planner::beyond_words(const domain::Specialist& one) const {
    if (one.prompt_tokens_max > 0 && needs_.prompt_tokens > one.prompt_tokens_max) {
        return fmt::format("the request has about {} tokens and it is declared for {} at most",
                           needs_.prompt_tokens, one.prompt_tokens_max);
    }
    return fmt::format("the difficulty is {:.2f} and it is declared for {:.2f} at most",
                       needs_.difficulty, one.difficulty_max);
}

std::string Planner::refusal(const Weighed& one) const {
    if (auto allowed = cleared_.permit().check_form(spec_of(one)); !allowed)
        return allowed.error().message();
    auto covered = authorise(request_.caller, spec_of(one), pair_of(one).adapter);
    if (!covered) return covered.error().message();
    const auto denied = moment_.denied.find(one.pair);
    return denied == moment_.denied.end() ? std::string() : denied->second;
}

milliseconds Planner::latency(const Roster::Facts& facts, const Live& live) const {
    const double first = live.first_token_ms > 0 ? live.first_token_ms : facts.first_token_ms;
    const double token = live.token_ms > 0 ? live.token_ms : facts.token_ms;
    const double total = first * (1.0 + live.queue_depth) + token * needs_.answer_tokens;
    return milliseconds(static_cast<std::int64_t>(total));
}

bool Planner::able(const domain::Capabilities& can) const noexcept {
    const bool speaks = request_.operation == domain::Operation::embed ? can.embed : can.chat;
    return speaks && (can.tools || !needs_.tools) && (can.json_schema || !needs_.json_schema) &&
           (can.images || !needs_.images) && (can.logprobs || !needs_.logprobs);
}

/// What the target cannot do, in words; empty when it can do all.
std::string_view Planner::lacks(const domain::Capabilities& can) const {
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

}  // namespace molly::router
