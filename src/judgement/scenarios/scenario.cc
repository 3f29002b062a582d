#include "scenarios/scenario.h"

#include <algorithm>
#include <functional>
#include <map>

namespace molly::scenarios {
namespace {

using domain::Tier;

const std::map<std::string, State, std::less<>>& states() {
    static const std::map<std::string, State, std::less<>> all = {
        {"up", State::up},
        {"down", State::down},
        {"busy", State::busy},
        {"broken", State::broken},
        {"refusing", State::refusing},
        {"dies before its answer", State::dies_early},
        {"dies mid-answer", State::dies_midway}};
    return all;
}

std::unexpected<Error> no_number(const Line& line, const std::string& text) {
    return fail(at_line(line.number, "`" + text + "` is no number here"));
}

Result<domain::TierSet> tiers_from(const Line& line, const std::string& text) {
    domain::TierSet tiers;
    for (const std::string& name : split(text, ' ')) {
        const auto tier = domain::tier_from(name);
        if (!tier) return fail(at_line(line.number, "no tier is called " + name));
        tiers = tiers | domain::TierSet{*tier};
    }
    return tiers;
}

Result<domain::Sensitivity> class_from(const Line& line, const std::string& text) {
    const auto sensitivity = domain::sensitivity_from(text);
    if (!sensitivity) return fail(at_line(line.number, "no class is called " + text));
    return *sensitivity;
}

domain::Residency places_from(const std::string& text) {
    const auto names = split(text, ' ');
    return domain::Residency({names.begin(), names.end()});
}

/// `"falco"` without its quotes.
std::string unquoted(const std::string& text) {
    const bool quoted = text.size() >= 2 && text.front() == '"' && text.back() == '"';
    return quoted ? text.substr(1, text.size() - 2) : text;
}

/// `quality 0.7`, `price 2`, `context 4096`, `first token 300`.
Result<void> read_measure(const Line& line, const std::string& word, std::string text,
                          domain::TargetSpec& spec) {
    if (word == "first" && take_word(text) != "token")
        return fail(at_line(line.number, "say `first token 300`"));
    const auto number = number_from(text);
    const auto count = count_from(text);
    if (!number || ((word == "context" || word == "first") && !count)) return no_number(line, text);
    if (word == "quality") spec.quality = *number;
    if (word == "confidence") {
        spec.confidence_min = *number;
        spec.capabilities.logprobs = true;
    }
    if (word == "price") spec.prices.per_answer_token = domain::money_from(*number / 1e6);
    if (word == "context") spec.capabilities.context_tokens_max = *count;
    if (word == "first") spec.first_token = std::chrono::milliseconds(*count);
    return {};
}

/// `takes 8000`, `sure 0.4`, `says one | another`, or a state: what a target does, not what it is
/// declared to be.
Result<bool> read_manner(const Line& line, std::string text, Manner& manner) {
    if (const auto known = states().find(text); known != states().end()) {
        manner.state = known->second;
        return true;
    }
    const std::string word = take_word(text);
    if (word == "says") {
        manner.says = split(text, '|');
        if (manner.says->empty()) return fail(at_line(line.number, "say `says one | another`"));
        return true;
    }
    if (word != "takes" && word != "sure") return false;
    const auto number = number_from(text);
    if (!number || *number < 0 || (word == "sure" && *number > 1)) return no_number(line, text);
    if (word == "sure") manner.sureness = *number;
    if (word == "takes")
        manner.takes = std::chrono::milliseconds(static_cast<std::int64_t>(*number));
    return true;
}

/// `judged by samples`, `judged by itself`, `judged by office`: how sure its answers are.
Result<void> read_measurement(const Line& line, std::string text,
                              domain::ConfidenceMeasure& measure) {
    using domain::ConfidenceSource;
    if (take_word(text) != "by" || text.empty())
        return fail(at_line(line.number, "say `judged by samples`, `by itself` or `by TARGET`"));
    std::string count = text;
    if (take_word(count) == "samples") {
        measure.source = ConfidenceSource::samples;
        if (!count.empty()) measure.samples = count_from(count).value_or(0);
        if (measure.samples < 2 || measure.samples > 16) return no_number(line, count);
    } else if (text == "itself") {
        measure.source = ConfidenceSource::stated;
    } else {
        measure.source = ConfidenceSource::verifier;
        measure.verifier = text;
    }
    return {};
}

/// One property of a target: `T1`, `in IT`, `quality 0.7`, `down`.
Result<void> read_property(const Line& line, std::string text, DeclaredTarget& target) {
    domain::TargetSpec& spec = target.spec;
    TRY(const bool manner, read_manner(line, text, target.manner));
    if (manner) return {};
    const std::string word = take_word(text);
    if (word == "quality" || word == "price" || word == "context" || word == "first" ||
        word == "confidence")
        return read_measure(line, word, text, spec);
    if (const auto tier = domain::tier_from(word)) {
        spec.tier = *tier;
        spec.local = *tier == Tier::t0;
    } else if (word == "in") {
        spec.jurisdiction = text;
    } else if (word == "inside") {
        spec.boundaries.insert(text);
    } else if (word == "judged") {
        return read_measurement(line, text, spec.measure);
    } else if (word == "embeds") {
        spec.capabilities.embed = true;
    } else if (word == "uses" && text == "tools") {
        spec.capabilities.tools = true;
    } else {
        return fail(at_line(line.number, "a target has no property `" + word + "`"));
    }
    return {};
}

Result<void> read_target(const Line& line, const std::string& name, Scenario& scenario) {
    DeclaredTarget target;
    target.spec.id = name;
    target.spec.endpoint.host = name + ".test";
    target.spec.endpoint.port = 443;
    for (const std::string& property : split(line.rest, ','))
        TRY_DO(read_property(line, property, target));
    scenario.targets.push_back(std::move(target));
    return {};
}

/// `specialist home: domain medicine, quality 0.8, threshold 0.6, at most 200 tokens, difficulty
/// 0.7, confidence 0.5`: the bare model's, because no adapter is played.
Result<void> read_specialist(const Line& line, const std::string& name, Scenario& scenario) {
    const auto target =
        std::find_if(scenario.targets.begin(), scenario.targets.end(),
                     [&](const DeclaredTarget& one) { return one.spec.id == name; });
    if (target == scenario.targets.end())
        return fail(at_line(line.number, "no target is called `" + name + "`"));
    domain::Specialist one;
    for (std::string property : split(line.rest, ',')) {
        const std::string word = take_word(property);
        const auto number = number_from(property);
        if (word == "domain") {
            const auto field = domain::field_from(property);
            if (!field) return fail(at_line(line.number, "no domain is called " + property));
            one.field = *field;
        } else if (word == "at" && property.starts_with("most ")) {
            const auto tokens = count_from(property.substr(5));
            if (!tokens) return no_number(line, property);
            one.prompt_tokens_max = *tokens;
        } else if (!number) {
            return fail(at_line(line.number, "a specialist has no property `" + word + "`"));
        } else if (word == "quality") {
            one.quality = *number;
        } else if (word == "threshold") {
            one.threshold = *number;
        } else if (word == "difficulty") {
            one.difficulty_max = *number;
        } else if (word == "confidence") {
            one.confidence_min = *number;
        } else {
            return fail(at_line(line.number, "a specialist has no property `" + word + "`"));
        }
    }
    target->spec.specialists.push_back(std::move(one));
    return {};
}

/// `key anna: tiers T0 T1, may declare standard, by default standard, only home`
Result<void> read_key(const Line& line, const std::string& name, Scenario& scenario) {
    domain::Caller caller;
    caller.member = name;
    caller.key_id = name;
    for (std::string property : split(line.rest, ',')) {
        const std::string word = take_word(property);
        if (word == "tiers") {
            TRY(caller.tiers, tiers_from(line, property));
        } else if (word == "may" && take_word(property) == "declare") {
            TRY(caller.lowest_class, class_from(line, property));
        } else if (word == "by" && take_word(property) == "default") {
            TRY(caller.default_class, class_from(line, property));
        } else if (word == "budget") {
            const auto budget = number_from(property);
            if (!budget) return no_number(line, property);
            scenario.budgets[name] = domain::money_from(*budget);
        } else if (word == "only") {
            caller.models = split(property, ' ');
        } else {
            return fail(at_line(line.number, "a key has no property `" + word + "`"));
        }
    }
    scenario.keys.emplace_back(name, std::move(caller));
    return {};
}

/// `label falcon: phrase "progetto falco", makes it secret, keeps it in EU`
Result<void> read_label_rule(const Line& line, const std::string& name, Scenario& scenario) {
    annotate::LabelRule rule;
    rule.name = name;
    for (std::string property : split(line.rest, ',')) {
        const std::string word = take_word(property);
        if (word == "phrase") {
            rule.phrases.push_back(unquoted(property));
        } else if (word == "pattern") {
            rule.patterns.push_back(unquoted(property));
        } else if (word == "tag") {
            rule.tags.push_back(property);
        } else if (word == "member") {
            rule.members.push_back(property);
        } else if (word == "makes" && take_word(property) == "it") {
            TRY(rule.sensitivity, class_from(line, property));
        } else if (word == "keeps" && property.starts_with("it in ")) {
            rule.residency = places_from(property.substr(6));
        } else {
            return fail(at_line(line.number, "a label rule has no property `" + word + "`"));
        }
    }
    scenario.labels.rules.push_back(std::move(rule));
    return {};
}

/// `policy staff: tag hr, tiers T0, keeps it in IT, permits T3, at most standard, conversation
/// anna/17, class private, targets in EU, redacted counts as standard`
Result<void> read_policy_rule(const Line& line, const std::string& name, Scenario& scenario) {
    policy::Rule rule;
    rule.name = name;
    for (std::string property : split(line.rest, ',')) {
        const std::string word = take_word(property);
        if (word == "tag") {
            rule.tags.push_back(property);
        } else if (word == "member") {
            rule.members.push_back(property);
        } else if (word == "tiers") {
            TRY(rule.tiers, tiers_from(line, property));
        } else if (word == "permits" && property == "T3") {
            rule.permit_t3 = true;
        } else if (word == "conversation") {
            rule.conversations.push_back(property);
        } else if (word == "class") {
            TRY(const auto sensitivity, class_from(line, property));
            rule.classes.push_back(sensitivity);
        } else if (word == "targets" && property.starts_with("in ")) {
            rule.jurisdictions = split(property.substr(3), ' ');
        } else if (word == "redacted" && property == "counts as standard") {
            rule.redacted_counts_as = domain::Sensitivity::standard;
        } else if (word == "keeps" && property.starts_with("it in ")) {
            rule.residency = places_from(property.substr(6));
        } else if (word == "at" && property.starts_with("most ")) {
            TRY(rule.at_most, class_from(line, property.substr(5)));
        } else if (word == "at" && property.starts_with("least ")) {
            TRY(rule.at_least, class_from(line, property.substr(6)));
        } else {
            return fail(at_line(line.number, "a policy rule has no property `" + word + "`"));
        }
    }
    scenario.policy.rules.push_back(std::move(rule));
    return {};
}

Result<void> read_ask(const Block& block, const std::string& name, Scenario& scenario) {
    Event event;
    event.number = block.heading.number;
    const auto key = std::find_if(scenario.keys.begin(), scenario.keys.end(),
                                  [&](const auto& known) { return known.first == name; });
    if (key == scenario.keys.end())
        return fail(at_line(block.heading.number, "no key is called `" + name + "`"));
    event.request.caller = key->second;
    event.request.model = "auto";
    TRY_DO(read_request(block.lines, event.request));
    scenario.events.push_back(std::move(event));
    return {};
}

Result<void> read_turn(const Line& line, std::string rest, Scenario& scenario) {
    Event event;
    event.kind = Event::Kind::turn;
    event.number = line.number;
    event.target = take_word(rest);
    if (!rest.starts_with("is ")) return fail(at_line(line.number, "say `now TARGET is STATE`"));
    for (const std::string& property : split(rest.substr(3), ',')) {
        TRY(const bool known, read_manner(line, property, event.manner));
        if (!known) return fail(at_line(line.number, "no state is called `" + property + "`"));
    }
    scenario.events.push_back(std::move(event));
    return {};
}

/// `routing: mixture 2, hedge after 500, hedge paid`
Result<void> read_routing(const Line& line, Scenario& scenario) {
    router::Options& routing = scenario.routing;
    for (std::string property : split(line.rest, ',')) {
        const std::string word = take_word(property);
        const std::string what = word == "hedge" ? take_word(property) : std::string();
        const auto number = count_from(property);
        if (word == "mixture" && number) {
            routing.mixture_max = *number;
        } else if (what == "after" && number) {
            routing.hedge = true;
            routing.hedge_after = std::chrono::milliseconds(*number);
        } else if (what == "paid") {
            routing.hedge_paid = true;
        } else {
            return fail(at_line(line.number, "routing has no property `" + word + "`"));
        }
    }
    return {};
}

Result<void> read_alias(const Line& line, const std::string& name, Scenario& scenario) {
    scenario.routing.aliases[name] = line.rest;
    return {};
}

Result<void> read_block(const Block& block, Scenario& scenario) {
    std::string rest = block.heading.word;
    const Line& line = block.heading;
    const std::string word = take_word(rest);
    if (word == "scenario") {
        scenario.title = line.rest;
    } else if (word == "target") {
        return read_target(line, rest, scenario);
    } else if (word == "specialist") {
        return read_specialist(line, rest, scenario);
    } else if (word == "key") {
        return read_key(line, rest, scenario);
    } else if (word == "label") {
        return read_label_rule(line, rest, scenario);
    } else if (word == "policy") {
        return read_policy_rule(line, rest, scenario);
    } else if (word == "routing") {
        return read_routing(line, scenario);
    } else if (word == "alias") {
        return read_alias(line, rest, scenario);
    } else if (word == "now") {
        return read_turn(line, rest, scenario);
    } else if (word == "ask") {
        return read_ask(block, rest, scenario);
    } else if (word == "wait") {
        Event event;
        event.kind = Event::Kind::wait;
        const auto seconds = count_from(rest);
        if (!seconds) return no_number(line, rest);
        event.wait = std::chrono::seconds(*seconds);
        scenario.events.push_back(std::move(event));
    } else if (word == "expect" && !scenario.events.empty()) {
        scenario.events.back().expected = block.lines;
    } else {
        return fail(at_line(line.number, "no block is called `" + word + "`"));
    }
    return {};
}

}  // namespace

Result<Scenario> read_scenario(const std::string& text, Scenario base) {
    TRY(const std::vector<Block> blocks, blocks_of(text));
    const bool alone = std::any_of(blocks.begin(), blocks.end(), [](const Block& block) {
        return block.heading.word.starts_with("target ");
    });
    Scenario scenario = alone ? Scenario{} : std::move(base);
    for (const Block& block : blocks)
        TRY_DO(read_block(block, scenario));
    for (const Event& event : scenario.events) {
        if (event.kind == Event::Kind::ask && event.expected.empty())
            return fail(at_line(event.number, "nothing is expected of this request"));
    }
    if (scenario.title.empty() || scenario.events.empty())
        return fail(ErrorCode::invalid_request, "a scenario has a title and at least one request");
    return scenario;
}

}  // namespace molly::scenarios
