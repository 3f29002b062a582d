#include <fstream>
#include <iterator>
#include <memory>

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include "app/api.h"
#include "app/commands.h"
#include "app/firewall.h"
#include "app/policy_check.h"
#include "app/policy_explain.h"
#include "base/json.h"
#include "scenarios/rehearsal.h"

namespace molly::app {
namespace {

struct PolicyOptions {
    std::string file;
    std::vector<std::string> files;
    std::string member = "owner";
    std::string app;
    std::string lowest_class = "private";
    std::vector<std::string> tiers;
    std::vector<std::string> download_hosts;
    std::string user;
};

Result<std::string> text_of(const std::string& file) {
    std::ifstream stream(file, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(stream), {}};
    if (stream.is_open() && !stream.bad()) return text;
    return fail(Error(ErrorCode::not_found, fmt::format("cannot read {}", file))
                    .italian(fmt::format("non si legge {}", file)));
}

Result<Config> config_of(const General& general, const std::string& file) {
    PlaceOptions options = general.places;
    if (!file.empty()) options.config = file;
    return read_config(find_places(options));
}

Result<void> check(const General& general, const PolicyOptions& options) {
    const Terminal& terminal = general.terminal;
    TRY(const Config config, config_of(general, options.file));
    TRY(const auto annotator, annotate::Annotator::make(config.labels));
    const std::vector<Remark> remarks = remarks_on(config);
    if (terminal.json) {
        json::array list;
        for (const Remark& remark : remarks) {
            list.push_back(json::object{{"path", remark.path},
                                        {"remark", terminal.say(remark.english, remark.italian)}});
        }
        json::object out;
        out["sound"] = true;
        out["rules_hash"] = config.rules_hash;
        out["remarks"] = std::move(list);
        terminal.line(to_text(json::value(std::move(out))));
        return {};
    }
    for (const Remark& remark : remarks) {
        terminal.line(fmt::format("{}: {}: {}", remark.path, terminal.say("careful", "attenzione"),
                                  terminal.say(remark.english, remark.italian)));
    }
    terminal.line(fmt::format(
        "{}: {} {}, {} {}, {} {} ({} {})", terminal.say("good", "va bene"),
        config.labels.rules.size(), terminal.say("label rules", "regole d'etichetta"),
        config.policy.rules.size(), terminal.say("policy rules", "regole di destinazione"),
        remarks.size(), terminal.say("remarks", "osservazioni"), terminal.say("hash", "impronta"),
        config.rules_hash));
    return {};
}

domain::Caller caller_of(const PolicyOptions& options) {
    domain::Caller caller;
    caller.member = options.member;
    caller.app = options.app;
    caller.key_id = "explained";
    if (const auto lowest = domain::sensitivity_from(options.lowest_class))
        caller.lowest_class = *lowest;
    if (options.tiers.empty()) return caller;
    caller.tiers = {};
    for (const std::string& word : options.tiers) {
        if (const auto tier = domain::tier_from(word))
            caller.tiers = caller.tiers | domain::TierSet{*tier};
    }
    return caller;
}

/// "the class were standard, and policy rule x did not apply".
std::string joined(const Terminal& terminal, const std::vector<Said>& changes) {
    std::string out;
    for (const Said& said : changes) {
        if (!out.empty()) out += terminal.say(", and ", ", e ");
        out += terminal.say(said.english, said.italian);
    }
    return out;
}

json::object to_json(const Terminal& terminal, const PolicyExplanation& explained) {
    json::array signals;
    for (const domain::Signal& signal : explained.signals) {
        signals.push_back(json::object{{"source", signal.source},
                                       {"class", to_string(signal.sensitivity)},
                                       {"count", signal.count}});
    }
    json::array targets;
    for (const Reach& reach : explained.targets) {
        json::array changes;
        for (const auto& one : reach.changes)
            changes.push_back(json::value(joined(terminal, one)));
        targets.push_back(json::object{
            {"target", reach.target},
            {"tier", to_string(reach.tier)},
            {"permitted", !reach.by_policy},
            {"excluded_by",
             reach.excluded_by.empty() ? json::value(nullptr) : json::value(reach.excluded_by)},
            {"would_open_if", std::move(changes)}});
    }
    json::object out;
    out["class"] = to_string(explained.label.sensitivity);
    out["residency"] = to_string(explained.label.residency);
    out["declassified"] = explained.declassified;
    out["signals"] = std::move(signals);
    out["rule"] = explained.decision.rule;
    out["permitted"] = to_string(explained.decision.permitted);
    out["refused"] = explained.refused
                         ? json::value(terminal.say(explained.refused->message(),
                                                    explained.refused->message_italian()))
                         : json::value(nullptr);
    out["targets"] = std::move(targets);
    return out;
}

void tell(const Terminal& terminal, const PolicyExplanation& explained) {
    terminal.line(fmt::format("{:<12}{}", terminal.say("class", "classe"),
                              to_string(explained.label.sensitivity)));
    terminal.line(fmt::format("{:<12}{}", terminal.say("may stay in", "può stare in"),
                              to_string(explained.label.residency)));
    for (const domain::Signal& signal : explained.signals) {
        terminal.line(fmt::format("{:<12}{} ({}{})", terminal.say("because of", "per via di"),
                                  signal.source, to_string(signal.sensitivity),
                                  signal.count > 1 ? fmt::format(", {}x", signal.count) : ""));
    }
    terminal.line(fmt::format("{:<12}{}", terminal.say("rule", "regola"), explained.decision.rule));
    terminal.line(fmt::format("{:<12}{}", terminal.say("permitted", "permessi"),
                              to_string(explained.decision.permitted)));
    if (explained.refused) {
        terminal.line(fmt::format(
            "{:<12}{}", terminal.say("REFUSED", "RIFIUTATA"),
            terminal.say(explained.refused->message(), explained.refused->message_italian())));
    }
    terminal.line("");
    for (const Reach& reach : explained.targets) {
        const std::string_view fate = reach.by_policy ? terminal.say("forbidden", "vietata")
                                      : reach.excluded_by.empty()
                                          ? terminal.say("permitted", "permessa")
                                          : terminal.say("cannot", "non può");
        terminal.line(fmt::format("{} ({}): {}{}{}", reach.target, to_string(reach.tier), fate,
                                  reach.excluded_by.empty() ? "" : ", ", reach.excluded_by));
        for (const auto& one : reach.changes)
            terminal.line(fmt::format("    {} {}", terminal.say("open if", "aperta se"),
                                      joined(terminal, one)));
        if (reach.by_policy && reach.changes.empty())
            terminal.line(
                terminal.say("    no change of class, place, key or one rule opens it",
                             "    nessun cambio di classe, luogo, chiave o regola la apre"));
    }
}

Result<void> explain(const General& general, const PolicyOptions& options) {
    const Terminal& terminal = general.terminal;
    TRY(const Config config, config_of(general, {}));
    TRY(const std::string body, text_of(options.file));
    TRY(domain::Request request, request_from(body));
    request.caller = caller_of(options);
    TRY(const PolicyExplanation explained, explain_policy(config, std::move(request)));
    if (terminal.json) {
        terminal.line(to_text(json::value(to_json(terminal, explained))));
    } else {
        tell(terminal, explained);
    }
    return {};
}

/// What a scenario without targets of its own goes on from.
scenarios::Scenario base_of(const Config& config) {
    scenarios::Scenario base;
    base.labels = config.labels;
    base.policy = config.policy;
    base.routing = config.routing;
    const auto add = [&](const domain::TargetSpec& spec) {
        scenarios::DeclaredTarget declared;
        declared.spec = spec;
        base.targets.push_back(std::move(declared));
    };
    if (config.engine.enabled) {
        domain::TargetSpec engine = config.engine.target;
        engine.capabilities.context_tokens_max = config.engine.limits.context_tokens_max;
        add(engine);
    }
    for (const auto& target : config.targets)
        add(*target);
    return base;
}

struct Rehearsed {
    std::string file;
    std::string title;
    scenarios::Differences all;
};

Result<Rehearsed> rehearse(const std::string& file, const scenarios::Scenario& base) {
    TRY(const std::string text, text_of(file));
    TRY(const scenarios::Scenario scenario, scenarios::read_scenario(text, base));
    TRY(const auto rehearsal, scenarios::Rehearsal::make(scenario));
    Rehearsed out{.file = file, .title = scenario.title, .all = {}};
    for (const scenarios::Event& event : scenario.events) {
        if (event.kind != scenarios::Event::Kind::ask) continue;
        const auto one = differences(event.expected, rehearsal->ask(event.request));
        out.all.found.insert(out.all.found.end(), one.found.begin(), one.found.end());
        out.all.checked += one.checked;
        out.all.unchecked += one.unchecked;
    }
    return out;
}

void tell(const Terminal& terminal, const Rehearsed& one) {
    if (terminal.json) {
        json::object out;
        out["file"] = one.file;
        out["title"] = one.title;
        out["as_written"] = one.all.found.empty();
        out["differences"] = json::array(one.all.found.begin(), one.all.found.end());
        out["checked"] = one.all.checked;
        out["unchecked"] = one.all.unchecked;
        terminal.line(to_text(json::value(std::move(out))));
        return;
    }
    terminal.line(fmt::format("{} {}: {}",
                              one.all.found.empty() ? terminal.say("AS WRITTEN", "COME SCRITTO")
                                                    : terminal.say("DIFFERS", "DIFFERISCE"),
                              one.file, one.title));
    for (const std::string& differs : one.all.found)
        terminal.line("    " + differs);
    if (one.all.unchecked > 0) {
        terminal.note(fmt::format("    {} {}", one.all.unchecked,
                                  terminal.say("expectations about attempts were not looked at",
                                               "attese sui tentativi non sono state guardate")));
    }
}

ExitCode test(const General& general, const PolicyOptions& options) {
    const auto config = config_of(general, {});
    if (!config) return general.terminal.failed(config.error());
    const scenarios::Scenario base = base_of(*config);
    bool good = !options.files.empty();
    for (const std::string& file : options.files) {
        const auto rehearsed = rehearse(file, base);
        if (!rehearsed) {
            const Error& error = rehearsed.error();
            const Error named = Error(error.code(), fmt::format("{}: {}", file, error.message()))
                                    .italian(fmt::format("{}: {}", file, error.message_italian()));
            return general.terminal.failed(named);
        }
        tell(general.terminal, *rehearsed);
        good = good && rehearsed->all.found.empty();
    }
    return good ? exit_done : exit_failed;
}

Result<std::uint32_t> user_of(const std::string& name) {
    if (name.empty()) return ::getuid();
    if (name.find_first_not_of("0123456789") == std::string::npos && name.size() < 10)
        return static_cast<std::uint32_t>(std::stoul(name));
    // Only this thread runs in a command of this kind.
    const passwd* found = ::getpwnam(name.c_str());
    if (found != nullptr) return found->pw_uid;
    return fail(Error(ErrorCode::not_found, fmt::format("there is no user {} here", name))
                    .italian(fmt::format("qui non c'è un utente {}", name)));
}

Result<void> firewall(const General& general, const PolicyOptions& options) {
    const Terminal& terminal = general.terminal;
    TRY(const Config config, config_of(general, {}));
    TRY(const std::uint32_t user, user_of(options.user));
    const std::vector<Exit> exits = exits_of(config, options.download_hosts);
    if (!terminal.json) {
        terminal.raw(nftables_of(exits, user));
        return {};
    }
    json::array list;
    for (const Exit& exit : exits) {
        list.push_back(json::object{{"name", exit.name},
                                    {"tier", to_string(exit.tier)},
                                    {"host", exit.host},
                                    {"port", exit.port},
                                    {"address", exit.address}});
    }
    json::object out;
    out["user"] = user;
    out["exits"] = std::move(list);
    out["nftables"] = nftables_of(exits, user);
    terminal.line(to_text(json::value(std::move(out))));
    return {};
}

Result<void> reload(const General& general) {
    const Terminal& terminal = general.terminal;
    const Places places = find_places(general.places);
    if (!find_running(places)) {
        return fail(Error(ErrorCode::unavailable,
                          "no server runs on this data folder; rules are read when one starts")
                        .italian("nessun server su questa cartella dati; le regole si leggono "
                                 "all'avvio"));
    }
    TRY(const auto api, open_api(places, terminal, ApiOptions()));
    TRY(const std::string body, body_of(api->call("POST", "/molly/v1/policy/reload")));
    if (terminal.json) {
        terminal.line(body);
        return {};
    }
    TRY(const json::value loaded, parse_json(body));
    terminal.line(fmt::format("{} {}", terminal.say("rules now:", "regole ora:"),
                              std::string_view(loaded.as_object().at("rules_hash").as_string())));
    return {};
}

void add_explain(Command& command, General& general,
                 const std::shared_ptr<PolicyOptions>& options) {
    command
        .add("explain", {"Where a request may go, why, and what would have to change",
                         "Dove può andare una richiesta, perché, e che cosa dovrebbe cambiare"})
        .argument("request", options->file,
                  {"file with the JSON of a request, OpenAI-shaped",
                   "file con il JSON di una richiesta, in forma OpenAI"})
        .option("--member", options->member, {"who asks (owner)", "chi chiede (owner)"})
        .option("--app", options->app, {"with which app", "con quale applicazione"})
        .choice("--lowest-class", options->lowest_class,
                {"lowest class that the key may declare (private)",
                 "classe più bassa che la chiave può dichiarare (private)"},
                classes)
        .choices("--tiers", options->tiers, {"tiers of the key", "livelli della chiave"},
                 "T0 T1 T2 T3")
        .run([&general, options] { return finish(general, explain(general, *options)); });
}

void add_firewall(Command& command, General& general,
                  const std::shared_ptr<PolicyOptions>& options) {
    command
        .add("firewall", {"Print the exits that can ever be used, as an nftables rule set",
                          "Stampa le uscite che possono servire, come regole nftables"})
        .option("--user", options->user,
                {"the user that Molly runs as (default: this one)",
                 "l'utente con cui gira Molly (di solito: questo)"})
        .option("--download-host", options->download_hosts,
                {"a host that models may be pulled from", "un host da cui scaricare modelli"})
        .run([&general, options] { return finish(general, firewall(general, *options)); });
}

}  // namespace

void add_policy(Command& root) {
    General& general = root.general();
    Command command = root.add("policy", {"What the rules say, before anything is sent",
                                          "Che cosa dicono le regole, prima di inviare"});
    const auto options = std::make_shared<PolicyOptions>();
    command.group().examples(
        {"  molly policy check\n  molly policy explain request.json --member anna\n"
         "  molly policy test scenarios/*.scenario   # expectations in plain text: docs/policy.md\n"
         "  molly policy firewall --user molly > molly.nft && sudo nft -c -f molly.nft\n"
         "  molly policy reload                      # or: kill -HUP\n",
         "  molly policy check\n  molly policy explain richiesta.json --member anna\n"
         "  molly policy test scenari/*.scenario     # attese in parole: docs/policy.md\n"
         "  molly policy firewall --user molly > molly.nft && sudo nft -c -f molly.nft\n"
         "  molly policy reload                      # oppure: kill -HUP\n"});
    command
        .add("check", {"Whether the rules are good, and which cannot be meant",
                       "Se le regole vanno bene, e quali non possono essere volute"})
        .optional_argument("file", options->file,
                           {"configuration (default: the one in use)",
                            "configurazione (di solito: quella in uso)"})
        .run([&general, options] { return finish(general, check(general, *options)); });
    add_explain(command, general, options);
    command
        .add("test", {"Play scenarios on the real rules; nothing is sent",
                      "Prova scenari sulle vere regole; non si invia nulla"})
        .arguments("files", options->files,
                   {"scenario files; one that declares no target goes on from the configuration",
                    "file di scenario; senza destinazioni proprie valgono quelle configurate"})
        .run([&general, options] { return test(general, *options); });
    add_firewall(command, general, options);
    command
        .add("reload", {"Have the running server read its label and policy rules again",
                        "Fa rileggere al server le regole di etichetta e destinazione"})
        .run([&general] { return finish(general, reload(general)); });
}

}  // namespace molly::app
