#include <memory>

#include <fmt/format.h>

#include "app/api.h"
#include "app/commands.h"
#include "base/json.h"

namespace molly::app {
namespace {

std::string text_at(const json::object& object, std::string_view name) {
    const json::value* value = object.if_contains(name);
    if (value == nullptr) return "";
    if (value->is_string()) return std::string(value->get_string());
    if (value->is_double()) return fmt::format("{:.3g}", value->get_double());
    return value->is_null() ? "" : to_text(*value);
}

std::string words_at(const json::object& object, std::string_view name) {
    const json::value* value = object.if_contains(name);
    std::string out;
    if (value == nullptr || !value->is_array()) return out;
    for (const json::value& word : value->get_array()) {
        if (word.is_string()) out += (out.empty() ? "" : " ") + std::string(word.get_string());
    }
    return out;
}

std::string health_of(const Terminal& terminal, const json::object& target) {
    const json::value* fault = target.if_contains("fault");
    if (fault != nullptr && fault->is_string()) return std::string(fault->get_string());
    const json::value* available = target.if_contains("available");
    const bool rests = available != nullptr && available->is_bool() && !available->get_bool();
    return std::string(rests ? terminal.say("resting after failures", "ferma dopo errori")
                             : terminal.say("ready", "pronta"));
}

Result<void> show(const General& general, bool probe) {
    const Terminal& terminal = general.terminal;
    ApiOptions options;
    TRY(const auto api, open_api(find_places(general.places), terminal, options));
    TRY(const std::string body,
        body_of(api->call("GET", probe ? "/molly/v1/targets?probe=true" : "/molly/v1/targets")));
    if (terminal.json) {
        terminal.line(body);
        return {};
    }
    TRY(const json::value parsed, parse_json(body));
    std::vector<std::vector<std::string>> rows;
    rows.push_back(terminal.words({{"name", "nome"},
                                   {"tier", "livello"},
                                   {"model", "modello"},
                                   {"endpoint", "indirizzo"},
                                   {"can", "sa fare"},
                                   {"quality", "qualità"},
                                   {"first token", "primo token"},
                                   {"health", "stato"}}));
    const json::value* targets = parsed.as_object().if_contains("targets");
    if (targets != nullptr && targets->is_array()) {
        for (const json::value& value : targets->get_array()) {
            const json::object& target = value.as_object();
            rows.push_back({text_at(target, "name"), text_at(target, "tier"),
                            text_at(target, "model"), text_at(target, "endpoint"),
                            words_at(target, "capabilities"), text_at(target, "quality"),
                            text_at(target, "first_token_ms") + " ms",
                            health_of(terminal, target)});
        }
    }
    terminal.table(rows);
    if (!api->remote()) {
        terminal.note(terminal.say("no server runs: the local model is not loaded and not listed",
                                   "nessun server: il modello locale non è caricato né elencato"));
    }
    return {};
}

}  // namespace

void add_targets(Command& root) {
    Command command = root.add("targets", {"List who can answer, and how they are",
                                           "Elenca chi può rispondere, e come sta"});
    const auto skip = std::make_shared<bool>(false);
    command.flag("--no-probe", *skip, {"do not ask each of them", "non interrogarle una per una"})
        .examples({"  molly targets\n  molly targets --json\n",
                   "  molly targets\n  molly targets --json\n"});
    command.run(
        [&general = command.general(), skip] { return finish(general, show(general, !*skip)); });
}

}  // namespace molly::app
