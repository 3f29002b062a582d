#include <memory>

#include <fmt/format.h>

#include "app/api.h"
#include "app/commands.h"
#include "base/json.h"
#include "members/members.h"

namespace molly::app {
namespace {

struct KeyOptions {
    std::string member;
    std::string app;
    bool admin = false;
    std::vector<std::string> tiers;
    std::vector<std::string> models;
    std::string lowest_class;
    std::string default_class;
    std::string declassify;
    std::uint32_t requests_per_minute = 0;
    std::uint32_t tokens_per_minute = 0;
    std::uint32_t parallel_max = 0;
    double budget = 0;
    std::uint32_t days = 0;
    std::string id;
};

std::string text_at(const json::value& value, std::string_view name) {
    const json::value* found = value.is_object() ? value.get_object().if_contains(name) : nullptr;
    if (found == nullptr || found->is_null()) return "";
    return found->is_string() ? std::string(found->get_string()) : to_text(*found);
}

members::Scope scope_of(const KeyOptions& options) {
    members::Scope scope;
    scope.member = options.member;
    scope.app = options.app;
    scope.admin = options.admin;
    scope.models = options.models;
    if (!options.tiers.empty()) scope.tiers = {};
    for (const std::string& word : options.tiers) {
        if (const auto tier = domain::tier_from(word))
            scope.tiers = scope.tiers | domain::TierSet{*tier};
    }
    if (const auto lowest = domain::sensitivity_from(options.lowest_class))
        scope.lowest_class = *lowest;
    scope.default_class = domain::sensitivity_from(options.default_class);
    scope.declassify = domain::sensitivity_from(options.declassify);
    if (options.requests_per_minute > 0) scope.requests_per_minute = options.requests_per_minute;
    if (options.tokens_per_minute > 0) scope.tokens_per_minute = options.tokens_per_minute;
    if (options.parallel_max > 0) scope.parallel_max = options.parallel_max;
    if (options.budget > 0) scope.budget_per_month = domain::money_from(options.budget);
    if (options.days > 0)
        scope.expires = std::chrono::system_clock::now() + std::chrono::days(options.days);
    return scope;
}

Result<void> create(const General& general, const KeyOptions& options) {
    const Terminal& terminal = general.terminal;
    if (options.member.empty()) {
        return fail(Error(ErrorCode::invalid_request, "say whose key it is: --member NAME")
                        .italian("indicare di chi è: --member NOME"));
    }
    TRY(const auto api, open_api(find_places(general.places), terminal, ApiOptions()));
    TRY(const std::string body,
        body_of(api->call("POST", "/molly/v1/keys", members::to_text(scope_of(options)), {})));
    if (terminal.json) {
        terminal.line(body);
        return {};
    }
    TRY(const json::value made, parse_json(body));
    terminal.line(text_at(made, "key"));
    terminal.note(fmt::format("{} {}. {}", terminal.say("its id is", "il suo id è"),
                              text_at(made, "id"),
                              terminal.say("Keep the key: it is not shown again.",
                                           "Conservare la chiave: non si vede più.")));
    return {};
}

Result<void> list(const General& general) {
    const Terminal& terminal = general.terminal;
    TRY(const auto api, open_api(find_places(general.places), terminal, ApiOptions()));
    TRY(const std::string body, body_of(api->call("GET", "/molly/v1/keys")));
    if (terminal.json) {
        terminal.line(body);
        return {};
    }
    TRY(const json::value parsed, parse_json(body));
    std::vector<std::vector<std::string>> rows;
    rows.push_back(terminal.words({{"id", "id"},
                                   {"ends in", "finisce in"},
                                   {"member", "membro"},
                                   {"app", "app"},
                                   {"admin", "amministra"},
                                   {"created", "creata"},
                                   {"state", "stato"}}));
    for (const json::value& key : parsed.as_object().at("keys").as_array()) {
        const json::value& scope = key.as_object().at("scope");
        const std::string revoked = text_at(key, "revoked");
        rows.push_back({text_at(key, "id"), text_at(key, "hint"), text_at(scope, "member"),
                        text_at(scope, "app"), text_at(scope, "admin"),
                        text_at(key, "created").substr(0, 10),
                        std::string(revoked.empty() ? terminal.say("valid", "valida")
                                                    : terminal.say("revoked", "revocata"))});
    }
    terminal.table(rows);
    return {};
}

Result<void> revoke(const General& general, const std::string& id) {
    const Terminal& terminal = general.terminal;
    TRY(const auto api, open_api(find_places(general.places), terminal, ApiOptions()));
    TRY(const std::string body, body_of(api->call("DELETE", "/molly/v1/keys/" + id)));
    if (terminal.json) {
        terminal.line(body);
    } else {
        terminal.note(fmt::format("{} {}", id,
                                  terminal.say("revoked, and the keys made with it",
                                               "revocata, con le chiavi fatte con essa")));
    }
    return {};
}

void add_scope(Command& maker, KeyOptions& options) {
    constexpr std::uint32_t most = 1'000'000'000;
    maker
        .option("--member", options.member,
                {"whose key it is (required)", "di chi è (obbligatorio)"})
        .option("--app", options.app, {"for which app", "per quale applicazione"})
        .flag("--admin", options.admin,
              {"may make keys and read every trace", "può fare chiavi e leggere le tracce"})
        .choices("--tiers", options.tiers, {"only these", "solo questi"}, "T0 T1 T2 T3")
        .option("--models", options.models, {"only these targets", "solo queste destinazioni"})
        .choice("--lowest-class", options.lowest_class,
                {"lowest class that it may declare (private)",
                 "classe più bassa che può dichiarare (private)"},
                classes)
        .choice(
            "--default-class", options.default_class,
            {"class of requests that declare none", "classe delle richieste che non ne dichiarano"},
            classes)
        .choice("--declassify", options.declassify,
                {"may lower labels of conversations, to this class at the lowest",
                 "può abbassare le etichette delle conversazioni, al minimo a questa classe"},
                classes)
        .option("--requests-per-minute", options.requests_per_minute, {"at most", "al massimo"},
                most)
        .option("--tokens-per-minute", options.tokens_per_minute, {"at most", "al massimo"}, most)
        .option("--parallel", options.parallel_max, {"requests at once", "richieste insieme"}, most)
        .option("--budget", options.budget, {"units of currency per month", "spesa al mese"})
        .option("--days", options.days, {"valid for so many days", "valida per giorni"}, 36500);
}

}  // namespace

void add_keys(Command& root) {
    General& general = root.general();
    Command command = root.add("keys", {"Who may ask: API keys", "Chi può chiedere: le chiavi"});
    constexpr std::string_view examples =
        "  molly keys create --member anna --app editor\n"
        "  molly keys create --member ci --tiers T0 --requests-per-minute 60 --days 30\n"
        "  molly keys list\n  molly keys revoke key_...\n";
    command.group().examples({examples, examples});
    const auto options = std::make_shared<KeyOptions>();
    Command maker = command.add(
        "create", {"Make a key; it is shown once", "Crea una chiave; si vede una volta sola"});
    add_scope(maker, *options);
    maker.run([&general, options] { return finish(general, create(general, *options)); });
    command.add("list", {"The keys, without their text", "Le chiavi, senza il loro testo"})
        .run([&general] { return finish(general, list(general)); });
    command
        .add("revoke",
             {"Revoke a key and those made with it", "Revoca una chiave e quelle fatte con essa"})
        .argument("id", options->id, {"its id: molly keys list", "il suo id: molly keys list"})
        .run([&general, options] { return finish(general, revoke(general, options->id)); });
}

}  // namespace molly::app
