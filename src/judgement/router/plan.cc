#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "router/internal/planner.h"

namespace molly::router {
namespace {

constexpr std::size_t told_max = 64;  // candidates in an explanation, best first

/// The words of some of the candidates that came as far as `stage`.
std::string all_words(const Planner& planner, const std::vector<Weighed>& weighed, Stage stage) {
    std::string words;
    std::size_t told = 0;
    for (const Weighed& one : weighed) {
        if (one.stage != stage || told++ >= told_max) continue;
        words += fmt::format("{}{}: {}", words.empty() ? "" : "; ", planner.spec_of(one).id,
                             planner.words(one));
    }
    return words;
}

void explain(const policy::ClearedRequest& cleared, const Roster& roster, const Planner& planner,
             std::span<const Weighed> told, domain::Decision& out) {
    const policy::Permit& permit = cleared.permit();
    out.rule = permit.rule();
    out.permitted = permit.tiers();
    out.residency = permit.residency();
    out.mode = planner.mode();
    out.t3_closed = roster.outside() ? to_string(permit.t3()) : "";
    out.candidates.clear();
    out.candidates.reserve(told.size());
    for (const Weighed& one : told)
        out.candidates.push_back(planner.told(one));
}

/// `roster` holds the adapter that is asked for, if one is.
Result<Plan> decide(const policy::ClearedRequest& cleared, const Wanted& wanted,
                    const Roster& roster, const Moment& moment, const Options& options,
                    domain::Decision& explanation, std::span<const SpecialistShare> shares,
                    std::span<const Expectation> expected) {
    const Planner planner(cleared, wanted, options, roster, moment, shares, expected);
    std::vector<Weighed> weighed = planner.weigh();
    Plan plan;
    plan.mixture = planner.mix(weighed);
    const std::size_t steps_max = std::max(1U, options.attempts_max);
    const std::size_t told = std::min(weighed.size(), std::max(told_max, steps_max));
    std::partial_sort(weighed.begin(), weighed.begin() + static_cast<std::ptrdiff_t>(told),
                      weighed.end(),
                      [&](const Weighed& a, const Weighed& b) { return planner.before(a, b); });
    const std::span<const Weighed> best = std::span(weighed).first(told);
    explain(cleared, roster, planner, best, explanation);
    for (const Weighed& one : best) {
        if (one.stage != Stage::admitted || plan.steps.size() >= steps_max) break;
        plan.steps.push_back(planner.step(one));
    }
    if (!plan.steps.empty()) return plan;
    Stage furthest = Stage::other_asked;
    for (const Weighed& one : weighed)
        furthest = std::max(furthest, one.stage);
    // Told of in the order in which they were declared.
    std::sort(weighed.begin(), weighed.end(),
              [](const Weighed& a, const Weighed& b) { return a.pair < b.pair; });
    return fail(nothing_left(cleared, roster, moment, weighed, furthest,
                             all_words(planner, weighed, furthest)));
}

/// What the views say of the roster's pairs.
Moment moment_of(const std::vector<TargetView>& views, const Roster& roster) {
    Moment moment;
    moment.targets.reserve(views.size());
    for (const Live& view : views)
        moment.targets.push_back(view);
    for (const Roster::Pair& pair : roster.pairs()) {
        const TargetView& view = views[pair.target];
        const bool there = pair.adapter.empty() ||
                           std::find(view.adapters.begin(), view.adapters.end(), pair.adapter) !=
                               view.adapters.end();
        const auto denied = view.adapters_denied.find(pair.adapter);
        const bool kept = denied != view.adapters_denied.end();
        if (kept) moment.denied[moment.pairs.size()] = denied->second;
        moment.pairs.push_back(!there ? Moment::Serving::no
                               : kept ? Moment::Serving::denied
                                      : Moment::Serving::yes);
    }
    return moment;
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
                  std::span<const SpecialistShare> shares, std::span<const Expectation> expected) {
    std::vector<std::shared_ptr<const domain::TargetSpec>> specs;
    specs.reserve(targets.size());
    for (const TargetView& view : targets)
        specs.push_back(view.spec);
    const std::string& adapter = adapter_of(cleared, wanted);
    if (adapter.empty()) {
        const Roster roster(std::move(specs), estimates);
        return decide(cleared, wanted, roster, moment_of(targets, roster), options, explanation,
                      shares, expected);
    }
    const Roster roster(std::move(specs), estimates, adapter);
    return decide(cleared, wanted, roster, moment_of(targets, roster), options, explanation, shares,
                  expected);
}

Result<Plan> plan(const policy::ClearedRequest& cleared, const Wanted& wanted, const Roster& roster,
                  const Moment& moment, const Options& options, domain::Decision& explanation,
                  std::span<const SpecialistShare> shares, std::span<const Expectation> expected) {
    if (!adapter_of(cleared, wanted).empty())
        return fail(ErrorCode::internal, "a roster of bare models does not know this adapter");
    return decide(cleared, wanted, roster, moment, options, explanation, shares, expected);
}

}  // namespace molly::router
