#include "scenario.h"

#include <fstream>
#include <functional>
#include <iterator>
#include <map>

namespace molly::scenarios {
namespace {

using domain::Tier;
using world::Behaviour;

const std::map<std::string, Behaviour, std::less<>> behaviours = {
    {"up", Behaviour::answers},
    {"down", Behaviour::unreachable},
    {"busy", Behaviour::limits},
    {"broken", Behaviour::fails},
    {"refusing", Behaviour::refuses},
    {"dies before its answer", Behaviour::dies_early},
    {"dies mid-answer", Behaviour::dies_midway}};

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

/// One property of a target: `T1`, `in IT`, `quality 0.7`, `down`.
Result<void> read_property(const Line& line, std::string text, DeclaredTarget& target) {
    domain::TargetSpec& spec = target.spec;
    if (const auto known = behaviours.find(text); known != behaviours.end()) {
        target.behaviour = known->second;
        return {};
    }
    const std::string word = take_word(text);
    if (const auto tier = domain::tier_from(word)) {
        spec.tier = *tier;
        spec.local = *tier == Tier::t0;
    } else if (word == "in") {
        spec.jurisdiction = text;
    } else if (word == "inside") {
        spec.boundaries.insert(text);
    } else if (word == "quality") {
        spec.quality = std::stod(text);
    } else if (word == "price") {  // per million answer tokens
        spec.prices.per_answer_token = domain::money_from(std::stod(text) / 1e6);
    } else if (word == "context") {
        spec.capabilities.context_tokens_max = static_cast<std::uint32_t>(std::stoul(text));
    } else if (word == "first" && take_word(text) == "token") {
        spec.first_token = std::chrono::milliseconds(std::stol(text));
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
    const auto known = behaviours.find(rest.substr(3));
    if (known == behaviours.end())
        return fail(at_line(line.number, "no state is called `" + rest.substr(3) + "`"));
    event.behaviour = known->second;
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
        event.wait = std::chrono::seconds(std::stol(rest));
        scenario.events.push_back(std::move(event));
    } else if (word == "expect" && !scenario.events.empty()) {
        scenario.events.back().expected = block.lines;
    } else {
        return fail(at_line(line.number, "no block is called `" + word + "`"));
    }
    return {};
}

}  // namespace

Result<Scenario> read_scenario(const std::filesystem::path& file) {
    std::ifstream stream(file);
    if (!stream) return fail(ErrorCode::not_found, "cannot read " + file.string());
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    TRY(const std::vector<Block> blocks, blocks_of(text));
    Scenario scenario;
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
