#include <memory>

#include <fmt/format.h>

#include "app/api.h"
#include "app/commands.h"
#include "base/json.h"

namespace molly::app {
namespace {

struct TraceOptions {
    std::uint32_t limit = 20;
    std::string member;
    std::string target;
    std::string outcome;
    std::string before;
    std::string id;
    bool receipt = false;
};

std::string text_at(const json::value& value, std::string_view name) {
    const json::value* found = value.is_object() ? value.get_object().if_contains(name) : nullptr;
    if (found == nullptr || found->is_null()) return "";
    if (found->is_string()) return std::string(found->get_string());
    if (found->is_double()) return fmt::format("{:.0f}", found->get_double());
    if (found->is_array()) {
        std::string words;
        for (const json::value& word : found->get_array()) {
            if (word.is_string())
                words += (words.empty() ? "" : " ") + std::string(word.get_string());
        }
        return words;
    }
    return to_text(*found);
}

const json::value& child(const json::value& value, std::string_view name) {
    static const json::value none;
    const json::value* found = value.is_object() ? value.get_object().if_contains(name) : nullptr;
    return found != nullptr ? *found : none;
}

std::string path_of(const TraceOptions& options) {
    std::string path = fmt::format("/molly/v1/traces?limit={}", options.limit);
    const auto add = [&path](std::string_view name, const std::string& value) {
        if (value.empty()) return;
        path += fmt::format("&{}=", name);
        for (const char c : value) {
            const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                               (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
            path +=
                plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
        }
    };
    add("member", options.member);
    add("target", options.target);
    add("outcome", options.outcome);
    add("before", options.before);
    return path;
}

Result<void> list(const General& general, const TraceOptions& options) {
    const Terminal& terminal = general.terminal;
    TRY(const auto api, open_api(find_places(general.places), terminal, ApiOptions()));
    TRY(const std::string body, body_of(api->call("GET", path_of(options))));
    if (terminal.json) {
        terminal.line(body);
        return {};
    }
    TRY(const json::value parsed, parse_json(body));
    const json::value& traces = child(parsed, "traces");
    if (!traces.is_array() || traces.get_array().empty()) {
        terminal.note(terminal.say("no trace yet: ask something with `molly ask`",
                                   "ancora nessuna traccia: chiedere con `molly ask`"));
        return {};
    }
    std::vector<std::vector<std::string>> rows;
    rows.push_back(terminal.words({{"time (UTC)", "ora (UTC)"},
                                   {"id", "id"},
                                   {"outcome", "esito"},
                                   {"class", "classe"},
                                   {"target", "destinazione"},
                                   {"tokens", "token"},
                                   {"ms", "ms"},
                                   {"member", "membro"}}));
    for (const json::value& trace : traces.get_array()) {
        const json::value& usage = child(trace, "usage");
        rows.push_back({text_at(trace, "time").substr(0, 19), text_at(trace, "id"),
                        text_at(trace, "outcome"), text_at(child(trace, "label"), "class"),
                        text_at(trace, "target"),
                        text_at(usage, "prompt_tokens") + " + " + text_at(usage, "answer_tokens"),
                        text_at(trace, "duration_ms"), text_at(trace, "member")});
    }
    terminal.table(rows);
    return {};
}

void print_attempt(const Terminal& terminal, const json::value& attempt) {
    const std::string adapter = text_at(attempt, "adapter");
    std::string text = fmt::format("  {}{}{} ({})", text_at(attempt, "target"),
                                   adapter.empty() ? "" : "/", adapter, text_at(attempt, "tier"));
    const std::string cause = text_at(attempt, "cause");
    if (!cause.empty()) text += fmt::format(" {}", cause);
    const std::string endpoint = text_at(attempt, "endpoint");
    text += endpoint.empty()
                ? std::string(terminal.say(", on this device", ", su questo dispositivo"))
                : fmt::format(", {}, {} {} B, {} {} B", endpoint, terminal.say("sent", "inviati"),
                              text_at(attempt, "bytes_sent"), terminal.say("received", "ricevuti"),
                              text_at(attempt, "bytes_received"));
    const std::string failed = text_at(attempt, "failed");
    const json::value& redactions = child(attempt, "redactions");
    if (redactions.is_object()) {
        text += fmt::format(", {}", terminal.say("redacted:", "oscurati:"));
        for (const auto& [kind, count] : redactions.get_object())
            text += fmt::format(" {} {}", to_text(count), std::string(kind));
    }
    const std::string drafted = text_at(attempt, "drafted");
    if (!drafted.empty()) {
        text += fmt::format(", {} {} {}, {} {}", terminal.say("drafted here:", "abbozzati qui:"),
                            drafted, terminal.say("tokens", "token"), text_at(attempt, "accepted"),
                            terminal.say("accepted", "accettati"));
    }
    if (!failed.empty()) text += fmt::format(": {}: {}", failed, text_at(attempt, "failure"));
    terminal.line(text);
}

void print_candidate(const Terminal& terminal, const json::value& candidate) {
    const std::string excluded = text_at(candidate, "excluded_by");
    terminal.line(fmt::format(
        "  {} ({}): {}", text_at(candidate, "target"), text_at(candidate, "tier"),
        excluded.empty() ? std::string(terminal.say("admitted", "ammessa"))
                         : fmt::format("{} {}", terminal.say("excluded:", "esclusa:"), excluded)));
}

void print_trace(const Terminal& terminal, const json::value& trace) {
    const auto row = [&](std::string_view english, std::string_view italian,
                         const std::string& value) {
        if (!value.empty())
            terminal.line(fmt::format("{:<12} {}", terminal.say(english, italian), value));
    };
    const json::value& label = child(trace, "label");
    const json::value& decision = child(trace, "decision");
    const json::value& usage = child(trace, "usage");
    row("trace", "traccia", text_at(trace, "id"));
    row("time", "ora", text_at(trace, "time"));
    row("outcome", "esito", text_at(trace, "outcome"));
    row("failure", "errore", text_at(trace, "failure"));
    row("asked for", "richiesto", text_at(trace, "model_asked"));
    row("through", "tramite", text_at(trace, "dialect"));
    row("member", "membro", text_at(trace, "member"));
    row("conversation", "conversaz.", text_at(trace, "conversation"));
    const json::value& lowered = child(trace, "lowered");
    row("lowered to", "abbassata a", text_at(lowered, "to"));
    row("because", "perché", text_at(lowered, "reason"));
    row("class", "classe", text_at(label, "class"));
    row("residency", "residenza", text_at(label, "residency"));
    row("rule", "regola", text_at(decision, "rule"));
    row("permitted", "permessi", text_at(decision, "permitted"));
    row("answered by", "ha risposto", text_at(trace, "target"));
    row("model", "modello", text_at(trace, "model"));
    row("model hash", "impronta", text_at(trace, "model_hash"));
    row("tokens", "token",
        text_at(usage, "prompt_tokens") + " + " + text_at(usage, "answer_tokens"));
    row("cost", "costo", text_at(trace, "cost"));
    row("duration", "durata", text_at(trace, "duration_ms") + " ms");
    terminal.line(terminal.say("candidates", "candidate"));
    for (const json::value& one : child(decision, "candidates").as_array())
        print_candidate(terminal, one);
    terminal.line(
        terminal.say("attempts (where each byte went)", "tentativi (dove è andato ogni byte)"));
    for (const json::value& one : child(trace, "attempts").as_array())
        print_attempt(terminal, one);
}

Result<void> show(const General& general, const TraceOptions& options) {
    const Terminal& terminal = general.terminal;
    TRY(const auto api, open_api(find_places(general.places), terminal, ApiOptions()));
    const std::string what = options.receipt ? "receipts/" : "traces/";
    TRY(const std::string body, body_of(api->call("GET", "/molly/v1/" + what + options.id)));
    if (terminal.json || options.receipt) {
        terminal.line(body);
        return {};
    }
    TRY(const json::value trace, parse_json(body));
    print_trace(terminal, trace);
    return {};
}

}  // namespace

void add_traces(Command& root) {
    Command command = root.add("traces", {"Look at what happened, without content",
                                          "Mostra che cosa è successo, senza contenuti"});
    General& general = root.general();
    const auto options = std::make_shared<TraceOptions>();
    command.group().examples(
        {"  molly traces list --limit 5\n"
         "  molly traces show req_...\n"
         "  molly traces show req_... --receipt\n",
         "  molly traces list --limit 5\n"
         "  molly traces show req_...\n"
         "  molly traces show req_... --receipt\n"});
    command.add("list", {"The latest requests", "Le ultime richieste"})
        .option("--limit", options->limit, {"how many (20)", "quante (20)"}, 1000)
        .option("--member", options->member, {"of this member", "di questo membro"})
        .option("--target", options->target, {"answered by this target", "con questa destinazione"})
        .choice("--outcome", options->outcome, {"with this outcome", "con questo esito"},
                "answered refused failed cancelled truncated")
        .option("--before", options->before, {"before this time (UTC)", "prima di quest'ora (UTC)"})
        .run([&general, options] { return finish(general, list(general, *options)); });
    command
        .add("show", {"One request: label, decision, attempts",
                      "Una richiesta: etichetta, decisione, tentativi"})
        .argument("id", options->id, {"id of the trace", "id della traccia"})
        .flag("--receipt", options->receipt,
              {"its receipt, as signed", "la sua ricevuta, come è firmata"})
        .run([&general, options] { return finish(general, show(general, *options)); });
}

}  // namespace molly::app
