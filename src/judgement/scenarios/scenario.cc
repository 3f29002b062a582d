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
    if (word == "price") spec.prices.per_answer_token = domain::money_from(*number / 1e6);
    if (word == "context") spec.capabilities.context_tokens_max = *count;
    if (word == "first") spec.first_token = std::chrono::milliseconds(*count);
    return {};
}

/// One property of a target: `T1`, `in IT`, `quality 0.7`, `down`.
Result<void> read_property(const Line& line, std::string text, DeclaredTarget& target) {
    domain::TargetSpec& spec = target.spec;
    if (const auto known = states().find(text); known != states().end()) {
        target.state = known->second;
        return {};
    }
    const std::string word = take_word(text);
    if (word == "quality" || word == "price" || word == "context" || word == "first")
        return read_measure(line, word, text, spec);
    if (const auto tier = domain::tier_from(word)) {
        spec.tier = *tier;
        spec.local = *tier == Tier::t0;
    } else if (word == "in") {
        spec.jurisdiction = text;
    } else if (word == "inside") {
        spec.boundaries.insert(text);
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
    const auto known = states().find(rest.substr(3));
    if (known == states().end())
        return fail(at_line(line.number, "no state is called `" + rest.substr(3) + "`"));
    event.state = known->second;
    scenario.events.push_back(std::move(event));
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
    } else if (word == "key") {
        return read_key(line, rest, scenario);
    } else if (word == "label") {
        return read_label_rule(line, rest, scenario);
    } else if (word == "policy") {
        return read_policy_rule(line, rest, scenario);
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
