#include <algorithm>
#include <memory>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "app/commands.h"
#include "app/prefix_files.h"
#include "base/json.h"
#include "gateway/record_json.h"

namespace molly::app {
namespace {

namespace fs = std::filesystem;

struct PrefixOptions {
    std::string id;
    std::string member;
    bool all = false;
};

/// Without a folder there is no key to read either.
Result<std::vector<FoundPrefix>> find_all(const General& general, bool whole) {
    const Places places = find_places(general.places);
    std::error_code fault;
    if (!fs::is_directory(prefix_folder(places), fault)) return std::vector<FoundPrefix>();
    TRY(const seal::Vault vault, seal::Vault::load_or_create(places.data / "vault.key"));
    return find_prefixes(prefix_folder(places), vault, whole);
}

/// `ready` is what a server with its model can use, as far as the file says.
std::string_view state_of(const FoundPrefix& found) {
    if (found.damaged) return "damaged";
    return found.head.record.layout.starts_with(engine::prefix_engine()) ? "ready" : "other_engine";
}

std::string_view tell_state(const Terminal& terminal, std::string_view state) {
    if (state == "damaged") return terminal.say("damaged", "danneggiato");
    if (state == "ready") return terminal.say("ready", "pronto");
    return terminal.say("other llama.cpp", "altro llama.cpp");
}

json::object to_json(const FoundPrefix& found) {
    json::object out;
    out["id"] = found.id;
    out["state"] = state_of(found);
    out["bytes"] = found.bytes;
    out["used"] = gateway::to_time(found.used);
    if (found.damaged) return out;
    const engine::PrefixRecord& record = found.head.record;
    out["model"] = found.head.model;
    out["model_sha256"] = found.head.model_hash;
    out["engine"] = record.layout;
    out["adapters"] = record.adapters;
    out["member"] = record.member;
    out["class"] = to_string(record.sensitivity);
    out["tokens"] = record.tokens.size();
    out["made"] = gateway::to_time(found.head.made);
    return out;
}

void print(const Terminal& terminal, const std::vector<FoundPrefix>& all) {
    if (terminal.json) {
        json::array prefixes;
        for (const FoundPrefix& found : all)
            prefixes.push_back(to_json(found));
        json::object out;
        out["prefixes"] = std::move(prefixes);
        terminal.line(to_text(json::value(std::move(out))));
        return;
    }
    if (all.empty()) {
        terminal.note(terminal.say(
            "none is kept: a request asks for it with \"molly\": {\"keep_prefix\": \"system\"}",
            "nessuno è conservato: lo chiede una richiesta con \"molly\": {\"keep_prefix\": "
            "\"system\"}"));
        return;
    }
    std::vector<std::vector<std::string>> rows;
    rows.push_back(terminal.words({{"id", "id"},
                                   {"state", "stato"},
                                   {"model", "modello"},
                                   {"adapters", "adattatori"},
                                   {"member", "membro"},
                                   {"class", "classe"},
                                   {"tokens", "token"},
                                   {"size", "dimensione"},
                                   {"used (UTC)", "usato (UTC)"}}));
    for (const FoundPrefix& found : all) {
        const engine::PrefixRecord& record = found.head.record;
        const bool readable = !found.damaged;
        rows.push_back({found.id, std::string(tell_state(terminal, state_of(found))),
                        found.head.model, record.adapters, record.member,
                        readable ? std::string(to_string(record.sensitivity)) : "",
                        readable ? std::to_string(record.tokens.size()) : "",
                        byte_size(found.bytes), gateway::to_time(found.used).substr(0, 19)});
    }
    terminal.table(rows);
}

Result<void> list(const General& general) {
    TRY(const auto all, find_all(general, false));
    print(general.terminal, all);
    return {};
}

Result<void> verify(const General& general) {
    TRY(const auto all, find_all(general, true));
    print(general.terminal, all);
    const auto bad = std::ranges::count_if(all, &FoundPrefix::damaged);
    if (bad == 0) return {};
    return fail(Error(ErrorCode::corrupt,
                      fmt::format("{} of {} are damaged; molly prefixes drop ID removes one, and "
                                  "the next request computes it again",
                                  bad, all.size()))
                    .italian(fmt::format("{} di {} sono danneggiati; molly prefixes drop ID ne "
                                         "rimuove uno, e la prossima richiesta lo ricalcola",
                                         bad, all.size())));
}

/// A running server finds out when it would read them, and computes.
Result<void> drop(const General& general, const PrefixOptions& options) {
    const Terminal& terminal = general.terminal;
    const auto ways = {options.all, !options.id.empty(), !options.member.empty()};
    if (std::ranges::count(ways, true) != 1) {
        return fail(Error(ErrorCode::invalid_request,
                          "say which: an id of `molly prefixes list`, --member NAME, or --all")
                        .italian("indicare quali: un id di `molly prefixes list`, --member NOME o "
                                 "--all"));
    }
    TRY(const auto all, find_all(general, false));
    const fs::path folder = prefix_folder(find_places(general.places));
    std::uint64_t dropped = 0;
    for (const FoundPrefix& found : all) {
        const bool meant = options.all || found.id == options.id ||
                           (!found.damaged && found.head.record.member == options.member &&
                            !options.member.empty());
        std::error_code fault;
        if (meant && fs::remove(prefix_path(folder, found.id), fault)) ++dropped;
        if (!fault) continue;
        return fail(
            Error(ErrorCode::unavailable,
                  fmt::format("cannot remove {}: {}", found.id, fault.message()))
                .italian(fmt::format("impossibile rimuovere {}: {}", found.id, fault.message())));
    }
    if (dropped == 0 && !options.id.empty()) {
        return fail(
            Error(ErrorCode::not_found,
                  fmt::format("there is no prefix {}; molly prefixes list", options.id))
                .italian(fmt::format("non c'è un prefisso {}; molly prefixes list", options.id)));
    }
    if (terminal.json) {
        terminal.line(to_text(json::value(json::object{{"dropped", dropped}})));
    } else {
        terminal.note(fmt::format("{} {}", dropped, terminal.say("dropped", "rimossi")));
    }
    return {};
}

}  // namespace

void add_prefixes(Command& root) {
    Command command = root.add("prefixes", {"Beginnings of prompts that are kept on disk",
                                            "Inizi di prompt conservati su disco"})
                          .group();
    const auto options = std::make_shared<PrefixOptions>();
    const General& general = command.general();
    command.add("list", {"Which there are", "Quali ci sono"}).run([&general] {
        return finish(general, list(general));
    });
    command
        .add("verify", {"Read every byte and say which are damaged",
                        "Legge ogni byte e dice quali sono danneggiati"})
        .run([&general] { return finish(general, verify(general)); });
    command.add("drop", {"Remove some; they are computed again", "Ne rimuove; si ricalcolano"})
        .optional_argument("id", options->id, {"as list names it", "come lo nomina list"})
        .option("--member", options->member, {"all of this member", "tutti di questo membro"})
        .flag("--all", options->all, {"all", "tutti"})
        .examples(
            {"  molly prefixes drop --member anna\n", "  molly prefixes drop --member anna\n"})
        .run([&general, options] { return finish(general, drop(general, *options)); });
}

}  // namespace molly::app
