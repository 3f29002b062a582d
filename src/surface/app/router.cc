#include <fstream>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "app/api.h"
#include "app/commands.h"
#include "base/json.h"

namespace molly::app {
namespace {

struct RouterOptions {
    std::string text;
    std::string receipt;
    std::string thumb;
    std::string file;
    std::string mode;
    std::string sensitivity;
    std::string precision = "0.9";
};

std::string text_at(const json::value& value, std::string_view key) {
    const json::object* object = value.if_object();
    const json::value* found = object == nullptr ? nullptr : object->if_contains(key);
    if (found == nullptr) return "";
    if (found->is_string()) return std::string(found->get_string());
    if (found->is_double()) return fmt::format("{:.3f}", found->get_double());
    return found->is_null() ? "" : to_text(*found);
}

/// The elements of an array, or none.
json::array list_at(const json::value& value, std::string_view key) {
    const json::object* object = value.if_object();
    const json::value* found = object == nullptr ? nullptr : object->if_contains(key);
    return found != nullptr && found->is_array() ? found->get_array() : json::array();
}

Result<void> priors(const General& general) {
    const Terminal& terminal = general.terminal;
    TRY(const auto api, open_api(find_places(general.places), terminal, ApiOptions()));
    TRY(const std::string body, body_of(api->call("GET", "/molly/v1/priors")));
    if (terminal.json) {
        terminal.line(body);
        return {};
    }
    TRY(const json::value parsed, parse_json(body));
    const json::array learned = list_at(parsed, "rows");
    if (learned.empty()) {
        terminal.note(terminal.say("nothing was judged yet: declared qualities count",
                                   "nulla è stato giudicato: valgono le qualità dichiarate"));
        return {};
    }
    std::vector<std::vector<std::string>> rows;
    rows.push_back(terminal.words({{"target", "destinazione"},
                                   {"adapter", "adattatore"},
                                   {"domain", "dominio"},
                                   {"difficulty", "difficoltà"},
                                   {"mean", "media"},
                                   {"evidence", "prove"},
                                   {"last", "ultima"}}));
    for (const json::value& row : learned) {
        rows.push_back({text_at(row, "target"), text_at(row, "adapter"), text_at(row, "field"),
                        text_at(row, "band"), text_at(row, "mean"), text_at(row, "weight"),
                        text_at(row, "updated").substr(0, 10)});
    }
    terminal.table(rows);
    return {};
}

Result<void> feedback(const General& general, const RouterOptions& options) {
    TRY(const auto api, open_api(find_places(general.places), general.terminal, ApiOptions()));
    const std::string asked =
        to_text(json::value(json::object{{"receipt", options.receipt}, {"thumb", options.thumb}}));
    TRY(const std::string body, body_of(api->call("POST", "/molly/v1/feedback", asked, {})));
    general.terminal.line(general.terminal.json ? std::string_view(body)
                                                : general.terminal.say("noted", "annotato"));
    return {};
}

/// Lines of JSON as one list.
Result<std::string> rows_in(const std::string& file) {
    std::ifstream in(file);
    if (!in) {
        return fail(Error(ErrorCode::not_found, fmt::format("cannot read {}", file))
                        .italian(fmt::format("impossibile leggere {}", file)));
    }
    std::string rows;
    for (std::string line; std::getline(in, line);) {
        if (!line.empty()) rows += (rows.empty() ? "" : ",") + line;
    }
    return "{\"rows\":[" + rows + "]}";
}

Result<void> import(const General& general, const RouterOptions& options) {
    TRY(const std::string asked, rows_in(options.file));
    TRY(const auto api, open_api(find_places(general.places), general.terminal, ApiOptions()));
    TRY(const std::string body, body_of(api->call("POST", "/molly/v1/priors", asked, {})));
    if (general.terminal.json) {
        general.terminal.line(body);
        return {};
    }
    TRY(const json::value parsed, parse_json(body));
    general.terminal.line(fmt::format("{} {}", text_at(parsed, "learned"),
                                      general.terminal.say("rows learned", "righe apprese")));
    return {};
}

double number_at(const json::value& value, std::string_view key) {
    const json::object* object = value.if_object();
    const json::value* found = object == nullptr ? nullptr : object->if_contains(key);
    return found != nullptr && found->is_number() ? found->to_number<double>() : -1;
}

/// Where judged answers draw the line for a wanted precision, as lines for the configuration.
Result<void> calibrate(const General& general, const RouterOptions& options) {
    const Terminal& terminal = general.terminal;
    TRY(const auto api, open_api(find_places(general.places), terminal, ApiOptions()));
    TRY(const std::string body,
        body_of(api->call("GET", "/molly/v1/priors?precision=" + options.precision)));
    if (terminal.json) {
        terminal.line(body);
        return {};
    }
    TRY(const json::value parsed, parse_json(body));
    const json::array lines = list_at(parsed, "lines");
    if (lines.empty()) {
        terminal.note(terminal.say(
            "no answer with a confidence was judged yet: set confidence_min somewhere, then "
            "`molly router feedback`, or `molly router import`",
            "nessuna risposta con una sicurezza è stata giudicata: impostare confidence_min, poi "
            "`molly router feedback`, oppure `molly router import`"));
        return {};
    }
    std::vector<std::vector<std::string>> rows;
    rows.push_back(terminal.words({{"target", "destinazione"},
                                   {"adapter", "adattatore"},
                                   {"confidence_from", "confidence_from"},
                                   {"domain", "dominio"},
                                   {"confidence_min", "confidence_min"},
                                   {"right", "giuste"},
                                   {"at least", "almeno"},
                                   {"accepted", "accettate"},
                                   {"judged", "giudicate"}}));
    for (const json::value& line : lines) {
        const bool found = number_at(line, "confidence_min") >= 0;
        const auto number = [&](std::string_view key) {
            return found ? fmt::format("{:.2f}", number_at(line, key)) : std::string("-");
        };
        const std::string field = text_at(line, "field");
        rows.push_back({text_at(line, "target"), text_at(line, "adapter"),
                        text_at(line, "confidence_from"),
                        field.empty() ? std::string(terminal.say("all", "tutti")) : field,
                        number("confidence_min"), number("precision"), number("precision_lower"),
                        number("accepted"), fmt::format("{:.0f}", number_at(line, "evidence"))});
    }
    terminal.table(rows);
    return {};
}

json::object question_of(const RouterOptions& options) {
    json::object extensions;
    if (!options.mode.empty()) extensions["mode"] = options.mode;
    if (!options.sensitivity.empty()) extensions["class"] = options.sensitivity;
    json::object out;
    out["model"] = "auto";
    out["messages"] = json::array{json::object{{"role", "user"}, {"content", options.text}}};
    if (!extensions.empty()) out["molly"] = std::move(extensions);
    return out;
}

Result<void> explain(const General& general, const RouterOptions& options) {
    const Terminal& terminal = general.terminal;
    ApiOptions needs;
    needs.engine = true;
    TRY(const auto api, open_api(find_places(general.places), terminal, needs));
    TRY(const std::string body, body_of(api->call("POST", "/molly/v1/explain",
                                                  to_text(json::value(question_of(options))), {})));
    if (terminal.json) {
        terminal.line(body);
        return {};
    }
    TRY(const json::value parsed, parse_json(body));
    const json::object* object = parsed.if_object();
    const json::value* profile = object == nullptr ? nullptr : object->if_contains("profile");
    if (profile != nullptr) terminal.line(to_text(*profile));
    std::vector<std::vector<std::string>> rows;
    rows.push_back(terminal.words({{"candidate", "candidata"},
                                   {"tier", "livello"},
                                   {"score", "punteggio"},
                                   {"quality", "qualità"},
                                   {"evidence", "prove"},
                                   {"mixture", "miscela"},
                                   {"cost", "costo"},
                                   {"latency", "latenza"},
                                   {"excluded", "esclusa"}}));
    for (const json::value& one : list_at(parsed, "candidates")) {
        const std::string adapter = text_at(one, "adapter");
        rows.push_back({text_at(one, "target") + (adapter.empty() ? "" : "/" + adapter),
                        text_at(one, "tier"), text_at(one, "score"), text_at(one, "quality"),
                        text_at(one, "evidence"), text_at(one, "weight"), text_at(one, "cost"),
                        text_at(one, "latency_ms"), text_at(one, "excluded_by")});
    }
    terminal.table(rows);
    return {};
}

}  // namespace

void add_router(Command& root) {
    Command command = root.add(
        "router", {"How requests are sent to the right place", "Come si sceglie a chi chiedere"});
    command.group();
    General& general = root.general();
    const auto options = std::make_shared<RouterOptions>();
    command.add("priors", {"What was learned of each target", "Che cosa si è appreso di ciascuna"})
        .run([&general] { return finish(general, priors(general)); });
    command
        .add("explain", {"Decide about a question without asking anybody",
                         "Decide su una domanda senza chiedere a nessuno"})
        .argument("text", options->text, {"the question", "la domanda"})
        .choice("--mode", options->mode, {"what weighs most", "che cosa pesa di più"},
                "balanced quality fast cheap")
        .choice("--class", options->sensitivity, {"its class", "la sua classe"}, classes)
        .run([&general, options] { return finish(general, explain(general, *options)); });
    command
        .add("feedback", {"Judge an answer; the next decision knows it",
                          "Giudica una risposta; la prossima decisione ne tiene conto"})
        .argument("receipt", options->receipt, {"of the answer", "della risposta"})
        .argument("thumb", options->thumb, {"up or down", "up o down"})
        .run([&general, options] { return finish(general, feedback(general, *options)); });
    command
        .add("calibrate",
             {"Where to draw the line below which an answer goes to the next tier",
              "Dove mettere la soglia sotto cui una risposta passa al livello successivo"})
        .option("--precision", options->precision,
                {"share of accepted answers that must be good (0.9)",
                 "quota di risposte accettate che devono essere buone (0.9)"})
        .examples({"  molly router calibrate --precision 0.95\n",
                   "  molly router calibrate --precision 0.95\n"})
        .run([&general, options] { return finish(general, calibrate(general, *options)); });
    command
        .add("import", {"Learn from lines of JSON: target, adapter, field, and band, mean, weight "
                        "of an evaluation or confidence, score of an answer",
                        "Apprende da righe JSON: target, adapter, field, e band, mean, weight di "
                        "una valutazione o confidence, score di una risposta"})
        .argument("file", options->file, {"the table", "la tabella"})
        .run([&general, options] { return finish(general, import(general, *options)); });
}

}  // namespace molly::app
