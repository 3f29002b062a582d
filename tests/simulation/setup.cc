#include "setup.h"

#include <array>

#include <fmt/format.h>

#include "base/json.h"

namespace molly::simulation {
namespace {

using domain::Sensitivity;
using domain::Tier;
using std::chrono::milliseconds;

const std::vector<std::string> all_places = {"IT", "DE", "US", "EU", "home-lan"};
const std::vector<std::string> all_tags = {"hr", "press"};

Sensitivity any_class(Random& random) {
    return static_cast<Sensitivity>(random.below(4));
}

domain::TierSet any_tiers(Random& random) {
    domain::TierSet tiers;
    for (const Tier tier : domain::all_tiers) {
        if (random.chance(75)) tiers = tiers | domain::TierSet{tier};
    }
    return tiers.empty() ? domain::TierSet{Tier::t0} : tiers;
}

Places any_places(Random& random) {
    Places places{random.one_of(all_places)};
    if (random.chance(40)) places.insert(random.one_of(all_places));
    return places;
}

Place make_place(Random& random, std::size_t number) {
    Place place;
    domain::TargetSpec& spec = place.spec;
    spec.id = fmt::format("t{}", number);
    spec.tier = number == 0 && random.chance(70) ? Tier::t0 : static_cast<Tier>(random.below(4));
    spec.local = spec.tier == Tier::t0;
    place.truth = spec.tier;
    if (random.chance(70)) spec.jurisdiction = random.one_of(all_places);
    if (random.chance(20)) spec.boundaries.insert("home-lan");
    spec.quality = static_cast<double>(random.below(100)) / 100.0;
    spec.first_token = milliseconds(random.between(10, 3000));
    spec.endpoint.host = spec.id + ".test";
    spec.endpoint.port = 443;
    spec.capabilities.embed = random.chance(70);
    spec.capabilities.tools = random.chance(80);
    spec.capabilities.context_tokens_max = random.chance(10) ? 64 : 8192;
    if (random.chance(30)) spec.prices.per_answer_token = domain::Money{1000};
    place.faults_percent = random.chance(12) ? 100 : static_cast<std::uint32_t>(random.below(50));
    return place;
}

domain::Field any_field(Random& random) {
    return static_cast<domain::Field>(random.below(domain::fields_count));
}

/// How answers of some places are doubted, and what some of this device are for: much is nobody's
/// alone, so several are asked together.
void make_doubts(Random& random, std::vector<Place>& places) {
    for (Place& place : places) {
        domain::TargetSpec& spec = place.spec;
        if (random.chance(30)) {
            spec.confidence_min = static_cast<double>(random.below(100)) / 100.0;
            spec.measure.source = static_cast<domain::ConfidenceSource>(random.below(4));
            spec.measure.samples = static_cast<std::uint32_t>(random.between(2, 3));
            spec.measure.verifier = fmt::format("t{}", random.below(places.size()));
        }
        for (std::size_t i = spec.local ? random.below(9) : 0; i > 0; --i) {
            domain::Specialist one;
            one.field = any_field(random);
            one.threshold = 0.4;
            spec.specialists.push_back(std::move(one));
        }
    }
}

void make_haste(Random& random, router::Options& routing) {
    routing.mixture_max = static_cast<std::uint32_t>(random.below(4));
    routing.mixture_share_min = 0.2;
    routing.hedge = random.chance(40);
    routing.hedge_after = milliseconds(random.between(1, 60));
    routing.hedge_paid = random.chance(50);
}

KeyOfWorld make_key(Random& random, std::size_t places) {
    KeyOfWorld key;
    key.text = fmt::format("molly-{}", random.word(40));
    key.scope.member = fmt::format("member{}", random.below(2));
    if (random.chance(20)) key.scope.tiers = any_tiers(random);
    if (random.chance(70)) key.scope.lowest_class = static_cast<Sensitivity>(random.below(3));
    if (random.chance(30)) {
        key.scope.default_class = std::max(any_class(random), key.scope.lowest_class);
    }
    if (random.chance(12)) key.scope.models = {fmt::format("t{}", random.below(places))};
    if (random.chance(30))
        key.scope.parallel_max = static_cast<std::uint32_t>(random.between(1, 2));
    return key;
}

annotate::LabelRule make_label_rule(Random& random, std::size_t number) {
    annotate::LabelRule rule;
    rule.name = fmt::format("label{}", number);
    rule.phrases = {fmt::format("Project Phrase{}", number)};
    if (random.chance(25)) rule.tags = {random.one_of(all_tags)};
    if (random.chance(15)) rule.members = {"member0"};
    if (random.chance(75)) rule.sensitivity = any_class(random);
    if (random.chance(35)) rule.residency = domain::Residency(any_places(random));
    return rule;
}

policy::Rule make_policy_rule(Random& random, std::size_t number) {
    policy::Rule rule;
    rule.name = fmt::format("policy{}", number);
    if (random.chance(50)) rule.tags = {random.one_of(all_tags)};
    if (random.chance(30)) rule.at_most = any_class(random);
    if (random.chance(20)) rule.conversations = {fmt::format("member{}/c0", random.below(2))};
    rule.permit_t3 = random.chance(50);
    if (random.chance(rule.permit_t3 ? 20 : 50)) rule.tiers = any_tiers(random);
    if (random.chance(25)) {
        const Places places = any_places(random);
        rule.jurisdictions = {places.begin(), places.end()};
    } else if (random.chance(30)) {
        rule.residency = domain::Residency(any_places(random));
    }
    if (random.chance(40)) rule.redacted_counts_as = Sensitivity::standard;
    return rule;
}

void field(std::string& out, std::string_view name, std::string_view text) {
    out += fmt::format(",\"{}\":", name);
    append_json_string(out, text);
}

void list(std::string& out, std::string_view name, const auto& texts) {
    out += fmt::format(",\"{}\":[", name);
    bool first = true;
    for (const std::string& text : texts) {
        if (!first) out += ',';
        append_json_string(out, text);
        first = false;
    }
    out += ']';
}

/// The places of a request that text can hide in.
struct Texts {
    std::array<std::string, 7>
        all;  // system, first turn, tool result, last turn, schema, metadata, user
};

std::string message(std::string_view role, const std::string& text, std::string_view more = "") {
    std::string out = fmt::format("{{\"role\":\"{}\"{},\"content\":", role, more);
    append_json_string(out, text);
    return out + "}";
}

std::string chat_body(Random& random, const Texts& texts, bool tools) {
    const auto& [system, first, result, last, schema, metadata, user] = texts.all;
    std::string body = "\"messages\":[" + message("system", system) + "," + message("user", first);
    if (tools) {
        body +=
            ",{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"c1\",\"type\":"
            "\"function\",\"function\":{\"name\":\"look\",\"arguments\":\"{}\"}}]}";
        body += "," + message("tool", result, ",\"tool_call_id\":\"c1\"");
    }
    if (random.chance(50)) body += "," + message("assistant", "yes?");
    body += "," + message("user", last) + "]";
    if (tools) {
        std::string parameters = "{\"type\":\"object\",\"description\":";
        append_json_string(parameters, schema);
        body +=
            ",\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"look\",\"parameters\":" +
            parameters + "}}}]";
    }
    body += ",\"metadata\":{\"note\":";
    append_json_string(body, metadata);
    body += "}";
    field(body, "user", user);
    return body;
}

/// The other faces carry the system text and the turns; the rest of `texts` stays unused.
std::string messages_body(const Texts& texts) {
    std::string body = "\"max_tokens\":16";
    field(body, "system", texts.all[0]);
    return body + ",\"messages\":[" + message("user", texts.all[1]) + "," +
           message("assistant", "yes?") + "," + message("user", texts.all[3]) + "]";
}

std::string ollama_body(const Texts& texts) {
    return "\"messages\":[" + message("system", texts.all[0]) + "," +
           message("user", texts.all[1]) + "," + message("user", texts.all[3]) + "]";
}

/// A German account number whose check digits hold (ISO 13616, mod 97).
std::string any_iban(Random& random) {
    std::string account;
    for (int i = 0; i < 18; ++i)
        account += static_cast<char>('0' + random.below(10));
    std::uint32_t rest = 0;
    for (const char digit : account + "131400")
        rest = (rest * 10 + static_cast<std::uint32_t>(digit - '0')) % 97;
    return fmt::format("DE{:02}{}", 98 - rest, account);
}

std::vector<std::string> make_identifiers(Random& random) {
    std::vector<std::string> identifiers;
    if (random.chance(30)) identifiers.push_back(any_iban(random));
    if (random.chance(30)) identifiers.push_back(random.word(8) + "@leak.example");
    return identifiers;
}

/// Hides the canary, identifiers and some phrases in those of the texts that the request has.
Texts make_texts(Random& random, Ask& ask, std::size_t rules,
                 const std::vector<std::size_t>& used) {
    Texts texts;
    texts.all = {"be brief", random.word(6), "{}", random.word(8), "a schema", "a note", "u1"};
    const auto spot = [&]() -> std::string& { return texts.all[random.one_of(used)]; };
    spot() += " " + ask.canary;
    ask.identifiers = make_identifiers(random);
    for (const std::string& identifier : ask.identifiers)
        spot() += " " + identifier + " ";
    for (std::size_t rule = 0; rule < rules; ++rule) {
        if (!random.chance(25)) continue;
        ask.phrases.insert(rule);
        // Case and white space do not matter to a phrase.
        spot() += fmt::format(" PROJECT{}phrase{} ", random.chance(50) ? "\n" : " ", rule);
    }
    return texts;
}

std::string embed_body(Random& random, Ask& ask, std::size_t rules) {
    std::string text = "text " + ask.canary;
    ask.identifiers = make_identifiers(random);
    for (const std::string& identifier : ask.identifiers)
        text += " " + identifier + " ";
    for (std::size_t rule = 0; rule < rules; ++rule) {
        if (!random.chance(25)) continue;
        ask.phrases.insert(rule);
        text += fmt::format(" project phrase{}", rule);
    }
    std::string body = "\"input\":[\"x\",";
    append_json_string(body, text);
    return body + "]";
}

std::string extensions(const Ask& ask) {
    std::string molly = "\"explain\":false";
    if (ask.declared) field(molly, "class", to_string(*ask.declared));
    if (ask.residency) list(molly, "residency", *ask.residency);
    if (!ask.tags.empty()) list(molly, "tags", ask.tags);
    if (!ask.conversation.empty()) field(molly, "conversation", ask.conversation);
    return ",\"molly\":{" + molly + "}";
}

std::string model_name(Random& random, std::size_t places) {
    if (random.chance(75)) return "auto";
    if (random.chance(50)) return "gpt-4o";
    if (random.chance(10)) return "nobody";
    return fmt::format("t{}", random.below(places));
}

/// Chooses the face that the request comes through; gives its body without model and extensions.
std::string make_inner(Random& random, Ask& ask, std::size_t rules) {
    const std::size_t face = random.below(100);
    if (face < 15) {
        ask.path = "/v1/embeddings";
        return embed_body(random, ask, rules);
    }
    ask.stream = random.chance(50);
    const std::string stream = fmt::format(",\"stream\":{}", ask.stream);
    if (face < 30) {
        ask.path = "/v1/messages";
        return messages_body(make_texts(random, ask, rules, {0, 1, 3})) + stream;
    }
    if (face < 45) {
        ask.path = "/api/chat";
        return ollama_body(make_texts(random, ask, rules, {0, 1, 3})) + stream;
    }
    ask.path = "/v1/chat/completions";
    const bool tools = random.chance(30);
    const std::vector<std::size_t> used = tools ? std::vector<std::size_t>{0, 1, 2, 3, 4, 5, 6}
                                                : std::vector<std::size_t>{0, 1, 3, 5, 6};
    return chat_body(random, make_texts(random, ask, rules, used), tools) + stream;
}

Ask make_ask(Random& random, const Setup& setup, std::size_t number) {
    Ask ask;
    ask.name = fmt::format("ask-{}", number);
    ask.key = random.below(setup.keys.size());
    ask.canary = "canary" + random.word(20);
    const Sensitivity lowest = setup.keys[ask.key].scope.lowest_class;
    if (random.chance(60)) ask.declared = any_class(random);
    if (ask.declared && random.chance(80)) ask.declared = std::max(*ask.declared, lowest);
    if (random.chance(15)) ask.residency = any_places(random);
    if (random.chance(25)) ask.tags = {random.one_of(all_tags)};
    if (random.chance(40)) ask.conversation = fmt::format("c{}", random.below(2));
    ask.start = milliseconds(random.below(400));
    if (random.chance(15)) ask.leaves_after = milliseconds(random.below(150));
    std::string inner = make_inner(random, ask, setup.labels.rules.size());
    ask.body = "{" + inner;
    field(ask.body, "model", model_name(random, setup.places.size()));
    ask.body += extensions(ask) + "}";
    return ask;
}

}  // namespace

Setup make_setup(Random& random) {
    Setup setup;
    const std::size_t places = random.between(1, 5);
    for (std::size_t i = 0; i < places; ++i)
        setup.places.push_back(make_place(random, i));
    make_doubts(random, setup.places);
    for (std::size_t i = random.between(1, 3); i > 0; --i)
        setup.keys.push_back(make_key(random, places));
    for (std::size_t i = random.below(3); i > 0; --i)
        setup.labels.rules.push_back(make_label_rule(random, setup.labels.rules.size()));
    for (std::size_t i = random.below(3); i > 0; --i)
        setup.policy.rules.push_back(make_policy_rule(random, i));
    setup.routing.attempts_max = static_cast<std::uint32_t>(random.between(1, 4));
    setup.routing.failures_to_open = static_cast<std::uint32_t>(random.between(1, 3));
    setup.routing.open_for = milliseconds(100);
    make_haste(random, setup.routing);
    for (std::size_t i = random.between(3, 8); i > 0; --i)
        setup.asks.push_back(make_ask(random, setup, setup.asks.size()));
    if (random.chance(8)) setup.store_refuses_percent = 20;
    return setup;
}

}  // namespace molly::simulation
