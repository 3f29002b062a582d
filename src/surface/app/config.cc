#include "app/config.h"

#include <fstream>
#include <sstream>
#include <utility>

#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>
#include <fmt/format.h>

#include "app/config_engine.h"
#include "app/config_reader.h"
#include "app/config_specialists.h"
#include "app/default_config.inc"
#include "seal/seal.h"

namespace molly::app {
namespace {

constexpr std::int64_t hour_ms = 3'600'000;

std::optional<LogLevel> log_level_from(std::string_view word) {
    if (word == "debug") return LogLevel::debug;
    if (word == "info") return LogLevel::info;
    if (word == "warning") return LogLevel::warning;
    if (word == "error") return LogLevel::error;
    return std::nullopt;
}

std::optional<store::Durability> durability_from(std::string_view word) {
    if (word == "process") return store::Durability::process;
    if (word == "power") return store::Durability::power;
    return std::nullopt;
}

void read_gateway(Reader in, Config& config) {
    net::ServerOptions& server = config.server;
    in.read("address", server.address);
    in.read("port", server.port, 0, 65535);
    in.read("allow_remote", config.allow_remote);
    in.read("hosts", config.gateway.hosts);
    in.read("origins", config.gateway.origins);
    in.read("ollama_key_id", config.gateway.anonymous_key_id);
    in.read("body_bytes_max", server.body_bytes_max, 1024, 1LL << 30U);
    in.read("header_bytes_max", server.header_bytes_max, 1024, 1LL << 20U);
    in.read("json_depth_max", config.gateway.json.depth_max, 4, 512);
    in.read("connections_max", server.connections_max, 1, 100'000);
    in.read("header_timeout_ms", server.header_timeout, 600'000);
    in.read("body_timeout_ms", server.body_timeout, hour_ms);
    in.read("idle_timeout_ms", server.idle_timeout, hour_ms);
    in.read("write_timeout_ms", server.write_timeout, hour_ms);
    in.read("request_timeout_ms", config.pipeline.request_timeout, 24 * hour_ms);
    in.read("keep_alive_ms", config.gateway.keep_alive, 600'000);
    in.read("stop_patience_ms", config.stop_patience, 600'000);
    in.read("io_threads", config.io_threads, 0, 64);
    config.gateway.json.bytes_max = server.body_bytes_max;
    if (config.gateway.keep_alive < std::chrono::seconds(1)) {
        in.fault("keep_alive_ms", "must be at least 1000", "deve essere almeno 1000");
    }
    in.close();
}

void read_retention(Reader in, store::Options& store) {
    using domain::Sensitivity;
    for (const Sensitivity one : {Sensitivity::public_, Sensitivity::standard,
                                  Sensitivity::private_, Sensitivity::secret}) {
        auto section = in.section(to_string(one));
        if (!section) continue;
        store::Retention& retention = store.retention[static_cast<std::size_t>(one)];
        section->read("trace_days", retention.traces, 36500);
        section->read("responses", retention.responses);
        section->read("response_days", retention.responses_for, 36500);
        section->close();
    }
    in.close();
}

void read_labels(Reader in, annotate::Options& labels, bool& fingerprints) {
    in.read_word("default_class", labels.default_class, domain::sensitivity_from,
                 "public, standard, private, secret");
    in.read("fingerprints", fingerprints);
    for (Reader& each : in.list("rule")) {
        annotate::LabelRule rule;
        each.read("name", rule.name);
        each.read("phrases", rule.phrases);
        each.read("patterns", rule.patterns);
        each.read("members", rule.members);
        each.read("apps", rule.apps);
        each.read("tags", rule.tags);
        each.read("paths", rule.paths);
        each.read("corpora", rule.corpora);
        each.read("class", rule.sensitivity);
        each.read("residency", rule.residency);
        if (rule.name.empty()) each.fault("name", "a rule needs a name", "la regola vuole un nome");
        if (!rule.sensitivity && !rule.residency) {
            each.fault("class", "a label rule raises something: set class or residency",
                       "una regola alza qualcosa: indicare class o residency");
        }
        each.close();
        labels.rules.push_back(std::move(rule));
    }
    in.close();
}

/// `raise` or `ignore`.
std::optional<bool> raising_from(std::string_view word) noexcept {
    if (word == "raise") return true;
    return word == "ignore" ? std::optional(false) : std::nullopt;
}

/// A class, or `none` for a kind of finding that raises nothing.
std::optional<std::optional<domain::Sensitivity>> raised_class_from(std::string_view word) {
    if (word == "none") return std::optional<domain::Sensitivity>();
    const auto sensitivity = domain::sensitivity_from(word);
    if (!sensitivity) return std::nullopt;
    return sensitivity;
}

void read_detect(Reader in, annotate::DetectOptions& detect) {
    in.read("enabled", detect.enabled);
    in.read("names", detect.names);
    in.read("topics", detect.topics);
    in.read_word("invalid_checksum", detect.invalid_raises, raising_from, "raise, ignore");
    if (auto section = in.section("classes")) {
        for (std::size_t i = 0; i < domain::finding_kinds; ++i) {
            section->read_word(to_string(static_cast<domain::FindingKind>(i)), detect.classes[i],
                               raised_class_from, "none, public, standard, private, secret");
        }
        section->close();
    }
    in.close();
}

void read_classes(Reader& in, std::vector<domain::Sensitivity>& classes) {
    std::vector<std::string> words;
    in.read("classes", words);
    for (const std::string& word : words) {
        if (const auto known = domain::sensitivity_from(word)) {
            classes.push_back(*known);
        } else {
            in.fault("classes", "must be of public, standard, private, secret",
                     "devono essere fra public, standard, private, secret");
        }
    }
}

void read_when(Reader& in, std::optional<policy::Hours>& out) {
    std::string hours;
    std::vector<std::string> weekdays;
    std::string zone;
    in.read("hours", hours);
    in.read("weekdays", weekdays);
    in.read("zone", zone);
    if (hours.empty() && weekdays.empty()) {
        if (!zone.empty())
            in.fault("zone", "says nothing without hours or weekdays",
                     "non dice nulla senza hours o weekdays");
        return;
    }
    const auto read = policy::hours_from(hours, weekdays, zone);
    if (read) {
        out = *read;
    } else {
        in.fault(hours.empty() ? "weekdays" : "hours", read.error().message(),
                 read.error().message_italian());
    }
}

/// Refuses what would do nothing, or other than it seems to.
void check_policy_rule(Reader& in, const policy::Rule& rule) {
    if (rule.name.empty()) in.fault("name", "a rule needs a name", "la regola vuole un nome");
    if (!rule.tiers && !rule.residency && !rule.permit_t3 && !rule.redacted_counts_as)
        in.fault("name",
                 "the rule has no effect: set tiers, residency, permit_t3 or "
                 "redacted_counts_as",
                 "la regola non ha effetti: indicare tiers, residency, permit_t3 o "
                 "redacted_counts_as");
    if (rule.redacted_counts_as && *rule.redacted_counts_as != domain::Sensitivity::standard)
        in.fault("redacted_counts_as", "can be \"standard\" only", "può essere solo \"standard\"");
    if (!rule.jurisdictions.empty() && (rule.residency || rule.redacted_counts_as))
        in.fault("jurisdictions",
                 "goes with tiers and permit_t3; residency and redacted_counts_as "
                 "concern every target",
                 "va con tiers e permit_t3; residency e redacted_counts_as riguardano ogni "
                 "destinazione");
}

void read_policy(Reader in, policy::Options& policy) {
    for (Reader& each : in.list("rule")) {
        policy::Rule rule;
        each.read("name", rule.name);
        each.read("members", rule.members);
        each.read("apps", rule.apps);
        each.read("tags", rule.tags);
        each.read("purposes", rule.purposes);
        each.read("conversations", rule.conversations);
        read_classes(each, rule.classes);
        each.read("at_most", rule.at_most);
        each.read("at_least", rule.at_least);
        read_when(each, rule.hours);
        each.read("jurisdictions", rule.jurisdictions);
        each.read("tiers", rule.tiers);
        each.read("residency", rule.residency);
        each.read("permit_t3", rule.permit_t3);
        each.read("redacted_counts_as", rule.redacted_counts_as);
        check_policy_rule(each, rule);
        each.close();
        policy.rules.push_back(std::move(rule));
    }
    in.close();
}

void read_routing(Reader in, Config& config) {
    router::Options& routing = config.routing;
    std::string predictor;
    in.read("predictor", predictor);
    config.predictor = predictor;
    in.read_word("mode", routing.mode, domain::mode_from, "balanced, quality, fast, cheap");
    in.read("attempts_max", routing.attempts_max, 1, 32);
    in.read("mixture_max", routing.mixture_max, 0, 8);
    in.read("hedge", routing.hedge);
    in.read("hedge_after_ms", routing.hedge_after, 60'000);
    in.read("hedge_paid", routing.hedge_paid);
    in.read("verifier_weight", routing.verifier_weight, 0, 1);
    in.read("failures_to_open", routing.failures_to_open, 1, 100);
    in.read("open_for_ms", routing.open_for, hour_ms);
    in.read("latency_reference_ms", routing.latency_reference, hour_ms);
    if (in.has("cost_reference")) {
        double cost = 0;
        in.read("cost_reference", cost, 0, 1e6);
        routing.cost_reference = domain::money_from(cost);
    } else {
        double unused = 0;
        in.read("cost_reference", unused, 0, 1e6);
    }
    in.read("alias_default", routing.alias_default);
    in.read("named_falls_back", routing.named_falls_back);
    in.close();
}

void read_endpoint(Reader& in, domain::TargetSpec& spec) {
    std::string text;
    in.read("url", text);
    const auto url = boost::urls::parse_uri(text);
    const bool http = url && url->scheme() == "http";
    const bool https = url && url->scheme() == "https";
    if ((!http && !https) || url->host().empty() || url->has_userinfo() || url->has_query()) {
        in.fault("url", "must be like http://192.168.1.20:8080/v1 (keys go into key_file)",
                 "deve essere come http://192.168.1.20:8080/v1 (le chiavi in key_file)");
        return;
    }
    spec.endpoint.tls = https;
    spec.endpoint.host = url->host_address();
    spec.endpoint.port = url->has_port() && url->port_number() != 0
                             ? url->port_number()
                             : static_cast<std::uint16_t>(https ? 443 : 80);
    spec.endpoint.path = url->path();
    while (spec.endpoint.path.ends_with('/'))
        spec.endpoint.path.pop_back();
}

void read_capabilities(Reader& in, domain::Capabilities& capabilities) {
    std::vector<std::string> words = {"chat"};
    in.read("capabilities", words);
    capabilities.chat = false;
    for (const std::string& word : words) {
        if (word == "chat") {
            capabilities.chat = true;
        } else if (word == "embed") {
            capabilities.embed = true;
        } else if (word == "tools") {
            capabilities.tools = true;
        } else if (word == "json_schema") {
            capabilities.json_schema = true;
        } else if (word == "logprobs") {
            capabilities.logprobs = true;
        } else if (word == "images") {
            capabilities.images = true;
        } else {
            in.fault("capabilities",
                     fmt::format("\"{}\" is none of chat, embed, tools, json_schema, logprobs, "
                                 "images",
                                 word),
                     fmt::format("\"{}\" non è fra chat, embed, tools, json_schema, logprobs, "
                                 "images",
                                 word));
        }
    }
    in.read("context_tokens_max", capabilities.context_tokens_max, 16, 1LL << 30U);
}

void check_target(Reader& in, const domain::TargetSpec& spec, const Config& config) {
    if (spec.id.empty() || spec.id == "auto" || spec.id.find('/') != std::string::npos) {
        in.fault("name", "a target needs a name, other than auto and without /",
                 "la destinazione vuole un nome, diverso da auto e senza /");
    }
    bool taken = config.engine.enabled && spec.id == config.engine.target.id;
    for (const auto& other : config.targets)
        taken = taken || other->id == spec.id;
    if (taken) {
        in.fault("name", fmt::format("\"{}\" is declared twice", spec.id),
                 fmt::format("\"{}\" è dichiarato due volte", spec.id));
    }
    check_confidence(in, spec.confidence_min, spec.measure, spec);
    if (!in.has("tier")) {
        in.fault("tier", "say who controls it: T1 (this network), T2 (yours, remote), T3",
                 "indicare chi lo controlla: T1 (questa rete), T2 (tuo, remoto), T3");
    }
    if (spec.tier >= domain::Tier::t2 && !spec.endpoint.tls && !spec.endpoint.host.empty()) {
        in.fault("url", "T2 and T3 need https", "T2 e T3 vogliono https");
    }
    if (!spec.endpoint.tls && !spec.endpoint.pin.empty()) {
        in.fault("pin", "a pin needs https", "un pin vuole https");
    }
    if (spec.tier == domain::Tier::t3 && spec.drafts != domain::Drafts::off) {
        in.fault("drafts", "T3 checks no drafts: it gets redacted requests only",
                 "T3 non verifica bozze: riceve solo richieste oscurate");
    }
    if (!spec.key_file.empty() && !spec.key_variable.empty()) {
        in.fault("key_variable", "give key_file or key_variable, not both",
                 "indicare key_file oppure key_variable, non entrambi");
    }
}

void read_target(Reader in, Config& config) {
    auto spec = std::make_shared<domain::TargetSpec>();
    in.read("name", spec->id);
    in.read_word("tier", spec->tier, domain::tier_from, "T0, T1, T2, T3");
    read_endpoint(in, *spec);
    in.read_word("dialect", spec->dialect, domain::dialect_from, "openai, anthropic, ollama");
    in.read("model", spec->model);
    in.read("controller", spec->controller);
    in.read("jurisdiction", spec->jurisdiction);
    std::vector<std::string> boundaries;
    in.read("boundaries", boundaries);
    spec->boundaries = {boundaries.begin(), boundaries.end()};
    in.read("pin", spec->endpoint.pin);
    in.read("ca_file", spec->endpoint.ca_file);
    in.read("key_file", spec->key_file);
    in.read("key_variable", spec->key_variable);
    in.read_price("price_input", spec->prices.per_input_token);
    in.read_price("price_cached", spec->prices.per_cached_token);
    in.read_price("price_answer", spec->prices.per_answer_token);
    read_capabilities(in, spec->capabilities);
    in.read("quality", spec->quality, 0, 1);
    read_confidence(in, spec->confidence_min, spec->measure);
    in.read_word("drafts", spec->drafts, domain::drafts_from, "off, measured, always");
    in.read("first_token_ms", spec->first_token, hour_ms);
    in.read("tokens_per_second", spec->tokens_per_second, 0.01, 1e6);
    in.read("connect_timeout_ms", spec->connect_timeout, 600'000);
    in.read("idle_timeout_ms", spec->idle_timeout, hour_ms);
    check_target(in, *spec, config);
    in.close();
    config.targets.push_back(std::move(spec));
}

void check_aliases(Reader& in, const Config& config) {
    for (const auto& [name, meaning] : config.routing.aliases) {
        bool known = meaning == "auto" || meaning == config.engine.target.id;
        for (const auto& target : config.targets)
            known = known || target->id == meaning;
        if (known) continue;
        in.fault("aliases",
                 fmt::format("\"{}\" stands for \"{}\", which is neither auto nor a target", name,
                             meaning),
                 fmt::format("\"{}\" indica \"{}\", che non è né auto né una destinazione", name,
                             meaning));
    }
}

void read_root(Reader in, Config& config) {
    if (auto section = in.section("gateway")) read_gateway(*section, config);
    if (auto section = in.section("log")) {
        section->read_word("level", config.log_level, log_level_from,
                           "debug, info, warning, error");
        section->close();
    }
    if (auto section = in.section("engine")) read_engine(*section, config.engine);
    if (auto section = in.section("store")) {
        section->read_word("durability", config.store.durability, durability_from,
                           "process, power");
        section->read("queue_max", config.store.queue_max, 16, 1'000'000);
        section->read("fingerprints_max", config.store.fingerprints_max, 1024, 1LL << 28U);
        section->close();
    }
    if (auto section = in.section("audit")) {
        std::string file;
        section->read("witness_file", file);
        config.store.witness_file = file;
        section->read("witness_every_s", config.store.witness_every, 86400);
        section->close();
    }
    if (auto section = in.section("retention")) read_retention(*section, config.store);
    if (auto section = in.section("labels"))
        read_labels(*section, config.labels, config.pipeline.fingerprints);
    if (auto section = in.section("detect")) read_detect(*section, config.labels.detect);
    if (auto section = in.section("policy")) read_policy(*section, config.policy);
    if (auto section = in.section("routing")) read_routing(*section, config);
    for (Reader& target : in.list("target"))
        read_target(target, config);
    read_specialists(in, config);
    check_verifiers(in, config);
    config.labels.detect.outside =
        std::any_of(config.targets.begin(), config.targets.end(),
                    [](const auto& target) { return target->tier == domain::Tier::t3; });
    in.read("aliases", config.routing.aliases);
    check_aliases(in, config);
    in.close();
}

/// The same for the same rules, however the file is laid out: toml++ keeps tables in order.
std::string hash_of_rules(const toml::table& root) {
    std::ostringstream text;
    for (const std::string_view name : {"labels", "detect", "policy"}) {
        text << name << '\n';
        if (const toml::table* table = root[name].as_table()) text << toml::json_formatter{*table};
        text << '\n';
    }
    return seal::to_hex(seal::sha256(text.view())).substr(0, 16);
}

Config built_in_defaults() {
    Config config;
    config.server.port = 8484;
    config.gateway.json.bytes_max = config.server.body_bytes_max;
    config.engine.target.id = "local";
    config.engine.target.local = true;
    config.engine.target.tier = domain::Tier::t0;
    config.engine.target.controller = "this device";
    config.engine.target.quality = 0.3;
    store::Retention& secret =
        config.store.retention[static_cast<std::size_t>(domain::Sensitivity::secret)];
    secret.responses = false;
    secret.responses_for = std::chrono::days(0);
    return config;
}

}  // namespace

std::string_view default_config() noexcept {
    return default_config_text;
}

Result<Config> parse_config(std::string_view text, std::string_view file_name) {
    Config config = built_in_defaults();
    Faults faults(file_name);
    const toml::parse_result parsed = toml::parse(text, file_name);
    if (!parsed) {
        faults.add(parsed.error().source(), "", parsed.error().description(),
                   parsed.error().description());
    } else {
        read_root(Reader(parsed.table(), "", faults), config);
        config.rules_hash = hash_of_rules(parsed.table());
    }
    if (faults.empty()) return config;
    return fail(Error(ErrorCode::invalid_request, faults.english())
                    .italian(faults.italian())
                    .reason("configuration"));
}

Result<Config> load_config(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    std::ostringstream text;
    if (!in || !(text << in.rdbuf())) {
        return fail(Error(ErrorCode::not_found,
                          fmt::format("cannot read the configuration {}", file.string()))
                        .italian(fmt::format("non si legge la configurazione {}", file.string())));
    }
    return parse_config(text.view(), file.string());
}

}  // namespace molly::app
