#pragma once
// A closed loop for the router's own tests: targets with scripted latency, price, failure and
// quality that answer, are judged, and change. Every decision is compared with what the world
// itself knows to be forbidden, not with the code that forbids it.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/coroutine.h"
#include "policy/policy_engine.h"
#include "router/estimates.h"
#include "router/router.h"

namespace molly::router::played {

class Chance {
public:
    explicit Chance(std::uint64_t seed) : state_(seed) {}
    std::uint64_t next() noexcept {
        state_ += 0x9E3779B97F4A7C15ULL;
        std::uint64_t z = state_;
        z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9ULL;
        z = (z ^ (z >> 27U)) * 0x94D049BB133111EBULL;
        return z ^ (z >> 31U);
    }
    double share() noexcept { return static_cast<double>(next() >> 11U) * 0x1.0p-53; }
    std::size_t below(std::size_t limit) noexcept { return next() % limit; }
    bool happens(double probability) noexcept { return share() < probability; }

private:
    std::uint64_t state_;
};

class PlayedClock final : public Clock {
public:
    MonoTime now() const noexcept override { return now_; }
    WallTime wall() const noexcept override {
        return WallTime(std::chrono::hours(500'000)) +
               std::chrono::duration_cast<WallTime::duration>(now_ - MonoTime());
    }
    Task<void> sleep_until(MonoTime /*when*/) override { co_return; }
    void advance(Duration by) { now_ += by; }

private:
    MonoTime now_{std::chrono::hours(1)};
};

/// How a (target, adapter) really is.
struct Truth {
    double first_token_ms = 200;
    double token_ms = 10;
    double fails = 0;      ///< probability
    double quality = 0.5;  ///< probability that its answer is good
};

struct PlayedTarget {
    std::shared_ptr<domain::TargetSpec> spec;
    Truth truth;
    std::vector<double> adapters;  ///< quality of each declared specialist, in their order
};

/// What one request came to.
struct Outcome {
    std::string first;     ///< step of the plan, `target/adapter`
    std::string answered;  ///< empty: nobody
    std::string fault;     ///< a promise that was broken; empty: none
    domain::Money cost;
};

class World {
public:
    explicit World(std::uint64_t seed) : chance(seed) {}

    PlayedTarget& add(std::string id, domain::Tier tier, double declared_quality, Truth truth) {
        PlayedTarget target;
        target.spec = std::make_shared<domain::TargetSpec>();
        target.spec->id = std::move(id);
        target.spec->tier = tier;
        target.spec->local = tier == domain::Tier::t0;
        target.spec->quality = declared_quality;
        target.spec->first_token = std::chrono::milliseconds(200);
        target.spec->tokens_per_second = 100;
        target.truth = truth;
        targets.push_back(std::move(target));
        return targets.back();
    }

    Outcome ask(domain::AnnotatedRequest asked, double judged = 1);

    Chance chance;
    PlayedClock clock;
    Options options;
    policy::Options rules;
    std::vector<PlayedTarget> targets;
    Estimates estimates{{}, clock};

private:
    static std::string name_of(const Plan::Step& step) {
        return step.target->id + (step.adapter.empty() ? "" : "/" + step.adapter);
    }
    std::vector<TargetView> views() const;
    std::string forbidden(const Plan& plan, const domain::AnnotatedRequest& asked,
                          const std::vector<TargetView>& seen) const;
    bool permitted(const domain::TargetSpec& spec, const domain::AnnotatedRequest& asked) const;
    double quality_of(const Plan::Step& step) const;
    const PlayedTarget& target_of(const Plan::Step& step) const;

    std::unique_ptr<Health> health_;
};

/// A private chat request about one domain.
inline domain::AnnotatedRequest request_about(domain::Field field, float difficulty = 0.2F) {
    domain::AnnotatedRequest asked;
    asked.request.caller.key_id = "k1";
    asked.capability.prompt_tokens = 200;
    asked.capability.context_tokens = 200;
    asked.capability.answer_tokens = 100;
    asked.capability.classified = true;
    asked.capability.fields[static_cast<std::size_t>(field)] = 1;
    asked.capability.difficulty = difficulty;
    return asked;
}

inline std::vector<TargetView> World::views() const {
    std::vector<TargetView> views;
    for (const PlayedTarget& target : targets) {
        TargetView view;
        view.spec = target.spec;
        for (const domain::Specialist& one : target.spec->specialists)
            view.adapters.push_back(one.adapter);
        health_->look(view);
        views.push_back(std::move(view));
    }
    return views;
}

/// By the table of SPEC section 1, in the world's own words.
inline bool World::permitted(const domain::TargetSpec& spec,
                             const domain::AnnotatedRequest& asked) const {
    using domain::Sensitivity;
    using domain::Tier;
    const Sensitivity label = asked.label.sensitivity;
    bool tier = false;
    if (spec.tier == Tier::t0) tier = true;
    if (spec.tier == Tier::t1) tier = label <= Sensitivity::private_;
    if (spec.tier == Tier::t2) tier = label <= Sensitivity::standard;
    if (spec.tier == Tier::t3)
        tier = label <= Sensitivity::standard && !rules.rules.empty() && asked.detection_complete;
    const bool caller = asked.request.caller.tiers.contains(spec.tier);
    const bool place = asked.label.residency.allows(spec.places());
    return tier && caller && place;
}

inline std::string World::forbidden(const Plan& plan, const domain::AnnotatedRequest& asked,
                                    const std::vector<TargetView>& seen) const {
    std::vector<std::string> names;
    if (plan.steps.empty() || plan.steps.size() > options.attempts_max) return "number of steps";
    for (const Plan::Step& step : plan.steps) {
        const domain::TargetSpec& spec = *step.target;
        const auto view = std::find_if(seen.begin(), seen.end(), [&](const TargetView& one) {
            return one.spec == step.target;
        });
        if (!permitted(spec, asked)) return spec.id + " is not permitted";
        if (!view->available) return spec.id + " rests";
        domain::Usage usage;
        usage.prompt_tokens = asked.capability.prompt_tokens;
        usage.answer_tokens = asked.capability.answer_tokens;
        const auto& cost_max = asked.request.extensions.cost_max;
        if (cost_max && cost_of(usage, spec.prices) > *cost_max) return spec.id + " is too dear";
        const auto& latency_max = asked.request.extensions.latency_max;
        if (latency_max && step.latency > *latency_max) return spec.id + " is too slow";
        if (asked.capability.context_tokens > spec.capabilities.context_tokens_max)
            return spec.id + " is too small";
        if (asked.capability.tools && !spec.capabilities.tools) return spec.id + " has no tools";
        for (const domain::Specialist& one : spec.specialists) {
            const bool its = one.adapter == step.adapter && one.field == asked.capability.field();
            if (its && static_cast<double>(asked.capability.difficulty) > one.difficulty_max)
                return spec.id + " is not for so hard a request";
        }
        names.push_back(name_of(step));
    }
    std::sort(names.begin(), names.end());
    if (std::adjacent_find(names.begin(), names.end()) != names.end()) return "asked twice";
    return {};
}

inline const PlayedTarget& World::target_of(const Plan::Step& step) const {
    return *std::find_if(targets.begin(), targets.end(),
                         [&](const PlayedTarget& one) { return one.spec == step.target; });
}

inline double World::quality_of(const Plan::Step& step) const {
    const PlayedTarget& target = target_of(step);
    const auto& declared = step.target->specialists;
    for (std::size_t i = 0; i < declared.size() && i < target.adapters.size(); ++i) {
        if (declared[i].adapter == step.adapter && !step.adapter.empty()) return target.adapters[i];
    }
    return target.truth.quality;
}

inline Outcome World::ask(domain::AnnotatedRequest asked, double judged) {
    if (!health_) health_ = std::make_unique<Health>(options, clock);
    Outcome outcome;
    const policy::PolicyEngine engine(rules);
    const domain::AnnotatedRequest copy = asked;
    const auto cleared = engine.clear(std::move(asked));
    if (!cleared) return outcome;
    const std::vector<TargetView> seen = views();
    domain::Decision decision;
    const auto made = plan(*cleared, {}, seen, options, decision, &estimates);
    domain::Decision again;
    const auto twice = plan(*cleared, {}, seen, options, again, &estimates);
    if (made.has_value() != twice.has_value()) outcome.fault = "not repeatable";
    if (!made) {
        // Nobody is left: then nobody may be left. What else closes T3 is the redactor's business.
        for (const TargetView& view : seen) {
            const bool plain =
                !copy.request.extensions.cost_max && !copy.request.extensions.latency_max &&
                !copy.capability.tools &&
                copy.capability.context_tokens <= view.spec->capabilities.context_tokens_max;
            if (plain && view.available && view.spec->tier != domain::Tier::t3 &&
                permitted(*view.spec, copy) && view.spec->specialists.empty())
                outcome.fault = view.spec->id + " could have been asked: " + made.error().message();
        }
        clock.advance(std::chrono::seconds(1));
        return outcome;
    }
    outcome.first = name_of(made->steps.front());
    if (name_of(twice->steps.front()) != outcome.first) outcome.fault = "not repeatable";
    if (std::string fault = forbidden(*made, copy, seen); !fault.empty()) outcome.fault = fault;
    for (const Plan::Step& step : made->steps) {
        if (!health_->admit(step.target->id)) continue;
        const Truth& truth = target_of(step).truth;
        if (chance.happens(truth.fails)) {
            clock.advance(std::chrono::milliseconds(20));
            health_->failed(step.target->id, Error(ErrorCode::unavailable, "played"));
            continue;
        }
        const double noise = 0.8 + 0.4 * chance.share();
        const auto first = std::chrono::microseconds(
            static_cast<std::int64_t>(truth.first_token_ms * noise * 1000));
        const auto whole =
            first + std::chrono::microseconds(static_cast<std::int64_t>(
                        truth.token_ms * noise * copy.capability.answer_tokens * 1000));
        clock.advance(whole);
        health_->succeeded(step.target->id, first, whole, copy.capability.answer_tokens);
        outcome.answered = name_of(step);
        outcome.cost += step.cost;
        if (chance.happens(judged)) {
            const double score = chance.happens(quality_of(step)) ? 1 : 0;
            std::ignore = estimates.learn(step.target->id, step.adapter, copy.capability, score, 1);
        }
        break;
    }
    return outcome;
}

}  // namespace molly::router::played
