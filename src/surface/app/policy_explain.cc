#include "app/policy_explain.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "base/clock.h"
#include "dialects/dialects.h"
#include "domain/texts.h"

namespace molly::app {
namespace {

using domain::AnnotatedRequest;
using domain::Sensitivity;
using domain::TargetSpec;

constexpr std::size_t changes_at_once_max = 3;
constexpr std::size_t alternatives_max = 3;

/// What could be different: the request's own label, the key, the rules.
struct World {
    AnnotatedRequest annotated;
    policy::Options policy;
    std::vector<std::size_t> dropped;  // rules, by their place in the configuration
};

struct Lever {
    Said said;
    std::function<void(World&)> pull;
};

bool open_to(const World& world, const TargetSpec& target) {
    policy::Options options = world.policy;
    std::vector<policy::Rule> kept;
    for (std::size_t i = 0; i < options.rules.size(); ++i) {
        if (std::find(world.dropped.begin(), world.dropped.end(), i) == world.dropped.end())
            kept.push_back(options.rules[i]);
    }
    options.rules = std::move(kept);
    const auto permit = policy::PolicyEngine(std::move(options)).decide(world.annotated);
    return permit && permit->check_form(target);
}

Lever lower_class(Sensitivity sensitivity) {
    return {{fmt::format("the class were {}", to_string(sensitivity)),
             fmt::format("la classe fosse {}", to_string(sensitivity))},
            [sensitivity](World& world) { world.annotated.label.sensitivity = sensitivity; }};
}

Lever without_rule(const policy::Rule& rule, std::size_t index) {
    return {{fmt::format("policy rule {} did not apply", rule.name),
             fmt::format("la regola {} non valesse", rule.name)},
            [index](World& world) { world.dropped.push_back(index); }};
}

std::vector<Lever> levers_of(const World& world, const TargetSpec& target) {
    std::vector<Lever> levers;
    const domain::Label& label = world.annotated.label;
    // The highest class first: who gives up little is told so.
    for (int lower = static_cast<int>(label.sensitivity) - 1; lower >= 0; --lower)
        levers.push_back(lower_class(static_cast<Sensitivity>(lower)));
    if (label.residency.constrained()) {
        levers.push_back(
            {{fmt::format("its content did not have to stay in {}", to_string(label.residency)),
              fmt::format("il contenuto non dovesse restare in {}", to_string(label.residency))},
             [](World& one) { one.annotated.label.residency = {}; }});
    }
    for (std::size_t i = 0; i < world.policy.rules.size(); ++i) {
        const policy::Rule& rule = world.policy.rules[i];
        if (rule.tiers || rule.residency) levers.push_back(without_rule(rule, i));
    }
    if (!world.annotated.request.caller.tiers.contains(target.tier)) {
        levers.push_back({{fmt::format("the key reached {}", to_string(target.tier)),
                           fmt::format("la chiave raggiungesse {}", to_string(target.tier))},
                          [tier = target.tier](World& one) {
                              auto& tiers = one.annotated.request.caller.tiers;
                              tiers = tiers | domain::TierSet{tier};
                          }});
    }
    if (target.tier != domain::Tier::t3) return levers;
    levers.push_back(
        {{"a rule said permit_t3 = true", "una regola dicesse permit_t3 = true"}, [](World& one) {
             policy::Rule permit;
             permit.name = "a-permit";
             permit.permit_t3 = true;
             one.policy.rules.push_back(std::move(permit));
         }});
    if (!world.annotated.detection_complete) {
        levers.push_back({{"every detector had looked at every text",
                           "ogni rilevatore avesse guardato ogni testo"},
                          [](World& one) {
                              one.annotated.detection_complete = true;
                              one.annotated.findings.clear();
                              domain::for_each_text(one.annotated.request,
                                                    [&](const std::string&, domain::TextForm) {
                                                        one.annotated.findings.emplace_back();
                                                    });
                          }});
    }
    return levers;
}

/// The smallest sets of levers that open the target, in the order of the levers.
class Search {
public:
    Search(const World& world, const TargetSpec& target)
        : world_(world), target_(target), levers_(levers_of(world, target)) {}

    std::vector<std::vector<Said>> run() {
        for (std::size_t size = 1; size <= changes_at_once_max && found_.empty(); ++size)
            choose(0, size);
        return std::move(found_);
    }

private:
    void choose(std::size_t from, std::size_t left) {
        if (found_.size() >= alternatives_max) return;
        if (left == 0) return judge();
        for (std::size_t i = from; i + left <= levers_.size(); ++i) {
            chosen_.push_back(i);
            choose(i + 1, left - 1);
            chosen_.pop_back();
        }
    }
    void judge() {
        World world = world_;
        std::vector<Said> said;
        for (const std::size_t one : chosen_) {
            levers_[one].pull(world);
            said.push_back(levers_[one].said);
        }
        if (!open_to(world, target_)) return;
        // A lower class than need be is no other way.
        const bool again = std::any_of(found_.begin(), found_.end(), [&](const auto& known) {
            return known.size() == said.size() && lowers_class(chosen_) &&
                   std::equal(known.begin() + 1, known.end(), said.begin() + 1,
                              [](const Said& a, const Said& b) { return a.english == b.english; });
        });
        if (!again) found_.push_back(std::move(said));
    }
    bool lowers_class(const std::vector<std::size_t>& chosen) const {
        return chosen.front() < static_cast<std::size_t>(world_.annotated.label.sensitivity);
    }

    const World& world_;
    const TargetSpec& target_;
    std::vector<Lever> levers_;
    std::vector<std::size_t> chosen_;
    std::vector<std::vector<Said>> found_;
};

std::vector<router::TargetView> views_of(const Config& config) {
    std::vector<router::TargetView> views;
    const auto add = [&](std::shared_ptr<const TargetSpec> spec) {
        router::TargetView view;
        view.first_token_ms = static_cast<double>(spec->first_token.count());
        view.token_ms = 1000 / spec->tokens_per_second;
        view.spec = std::move(spec);
        views.push_back(std::move(view));
    };
    if (config.engine.enabled) {
        TargetSpec spec = config.engine.target;
        // What the model can do is known once it is loaded; placement is the question here.
        spec.capabilities.embed = spec.capabilities.tools = true;
        spec.capabilities.json_schema = spec.capabilities.logprobs = true;
        spec.capabilities.context_tokens_max = config.engine.limits.context_tokens_max;
        add(std::make_shared<const TargetSpec>(std::move(spec)));
    }
    for (const auto& target : config.targets)
        add(target);
    return views;
}

}  // namespace

Result<domain::Request> request_from(std::string_view body) {
    const JsonLimits limits;
    TRY(json::value value, parse_json(body, limits));
    json::object* object = value.if_object();
    dialects::Face face = dialects::Face::openai_chat;
    if (object != nullptr && !object->contains("messages")) {
        if (object->contains("prompt")) face = dialects::Face::openai_completions;
        if (object->contains("input")) face = dialects::Face::openai_embeddings;
    }
    // Where content may go is asked of any model, unless the file names one.
    if (object != nullptr && !object->contains("model")) object->emplace("model", "auto");
    TRY(dialects::Decoded decoded, dialects::decode_request(face, to_text(value), limits));
    return std::move(decoded.request);
}

Result<PolicyExplanation> explain_policy(const Config& config, domain::Request request) {
    const std::string model = request.model;
    TRY(const auto annotator, annotate::Annotator::make(config.labels));
    TRY(AnnotatedRequest annotated, annotator->annotate(std::move(request), std::nullopt));
    annotated.time = system_clock().wall();
    PolicyExplanation out;
    out.label = annotated.label;
    out.signals = annotated.signals;
    out.declassified = annotated.declassified;
    const World world{.annotated = annotated, .policy = config.policy, .dropped = {}};
    const std::vector<router::TargetView> views = views_of(config);
    std::vector<std::string> names;
    for (const router::TargetView& view : views)
        names.push_back(view.spec->id);
    const auto decide = [&]() -> Result<void> {
        TRY(const router::Wanted wanted, router::resolve_model(model, names, config.routing));
        TRY(const policy::ClearedRequest cleared,
            policy::PolicyEngine(config.policy).clear(std::move(annotated)));
        TRY(const router::Plan plan,
            router::plan(cleared, wanted, views, config.routing, out.decision));
        return {};
    };
    if (const auto decided = decide(); !decided) out.refused = decided.error();
    for (const router::TargetView& view : views) {
        Reach reach{.target = view.spec->id,
                    .tier = view.spec->tier,
                    .excluded_by = {},
                    .by_policy = !open_to(world, *view.spec),
                    .changes = {}};
        for (const domain::Candidate& candidate : out.decision.candidates) {
            if (candidate.target == reach.target) reach.excluded_by = candidate.excluded_by;
        }
        if (reach.by_policy) reach.changes = Search(world, *view.spec).run();
        out.targets.push_back(std::move(reach));
    }
    return out;
}

}  // namespace molly::app
