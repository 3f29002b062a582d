#include <iostream>
#include <iterator>
#include <memory>
#include <utility>

#include "app/commands.h"
#include "app/question.h"

namespace molly::app {
namespace {

struct AskOptions {
    std::vector<std::string> words;
    std::string system;
    bool explain = false;
    Question question;
};

std::string text_of(const AskOptions& options) {
    std::string text;
    for (const std::string& word : options.words)
        text += (text.empty() ? "" : " ") + word;
    // `molly ask "what is this?" < file`: the question first, then the material.
    if (!standard_input_is_terminal()) {
        const std::string piped{std::istreambuf_iterator<char>(std::cin),
                                std::istreambuf_iterator<char>()};
        if (!piped.empty()) text += (text.empty() ? "" : "\n\n") + piped;
    }
    return text;
}

void print_json(const Terminal& terminal, const Answer& answer, const std::string& trace) {
    json::object out;
    out["answer"] = answer.text;
    out["target"] = answer.target;
    out["tier"] = answer.tier;
    out["receipt"] = answer.receipt;
    out["prompt_tokens"] = answer.prompt_tokens;
    out["answer_tokens"] = answer.answer_tokens;
    out["duration_ms"] = answer.duration.count();
    if (!trace.empty()) {
        if (const auto parsed = parse_json(trace); parsed && parsed->is_object()) {
            const json::value* decision = parsed->get_object().if_contains("decision");
            if (decision != nullptr) out["decision"] = *decision;
        }
    }
    terminal.line(to_text(json::value(std::move(out))));
}

Result<void> ask(const General& general, AskOptions options) {
    const Terminal& terminal = general.terminal;
    const std::string text = text_of(options);
    if (text.empty()) {
        return fail(Error(ErrorCode::invalid_request,
                          "nothing to ask: molly ask \"your question\", or pipe a text in")
                        .italian("nulla da chiedere: molly ask \"la domanda\", o un testo da "
                                 "standard input"));
    }
    ApiOptions api_options;
    api_options.engine = true;
    TRY(const auto api, open_api(find_places(general.places), terminal, api_options));
    if (!options.system.empty()) options.question.turns.push_back({"system", options.system});
    options.question.turns.push_back({"user", text});
    std::function<void(std::string_view)> show;
    if (!terminal.json) show = [&terminal](std::string_view piece) { terminal.raw(piece); };
    TRY(const Answer answer, put_question(*api, options.question, show));
    if (terminal.json) {
        std::string trace;
        if (options.explain) {
            TRY(trace, body_of(api->call("GET", "/molly/v1/traces/" + answer.receipt)));
        }
        print_json(terminal, answer, trace);
        return {};
    }
    if (!answer.text.ends_with('\n')) terminal.raw("\n");
    terminal.note(summary_of(terminal, answer));
    if (options.explain) {
        TRY(const std::string explanation, explanation_of(*api, terminal, answer.receipt));
        terminal.note(explanation);
    }
    return {};
}

}  // namespace

void add_ask(Command& root) {
    Command command = root.add(
        "ask", {"Ask one question and print the answer", "Fa una domanda e stampa la risposta"});
    const auto options = std::make_shared<AskOptions>();
    command
        .arguments("question", options->words,
                   {"the question; standard input is added to it",
                    "la domanda; vi si aggiunge lo standard input"})
        .choice("--class", options->question.sensitivity,
                {"how sensitive it is (default private)", "quanto è sensibile (private)"}, classes)
        .option("--model", options->question.model,
                {"auto (default) or a target: molly targets",
                 "auto (di solito) o una destinazione: molly targets"})
        .choice("--mode", options->question.mode, {"what counts most", "che cosa conta di più"},
                "balanced quality fast cheap")
        .option("--system", options->system,
                {"instructions for the model", "istruzioni per il modello"})
        .option("--max-tokens", options->question.tokens_max,
                {"tokens of the answer at most", "token della risposta al massimo"}, 1U << 20U)
        .choice("--keep-prefix", options->question.keep_prefix,
                {"keep what was computed of this beginning on disk: docs/engine.md",
                 "conserva su disco quanto calcolato di questo inizio: docs/engine.md"},
                "system prompt")
        .flag("--explain", options->explain,
              {"say why this target", "spiega la scelta della destinazione"})
        .examples({"  molly ask \"What is a receipt?\"\n"
                   "  molly ask --class secret --explain \"...\"\n"
                   "  git diff | molly ask \"Write a commit message\"\n",
                   "  molly ask \"Che cos'è una ricevuta?\"\n"
                   "  molly ask --class secret --explain \"...\"\n"
                   "  git diff | molly ask \"Scrivi il messaggio del commit\"\n"});
    command.run([&general = command.general(), options] {
        return finish(general, ask(general, *options));
    });
}

}  // namespace molly::app
