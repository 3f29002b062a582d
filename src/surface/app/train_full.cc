#include "app/train_full.h"

#include <memory>

#include <fmt/format.h>

#include "app/house.h"
#include "app/text_coder.h"
#include "app/train_options.h"
#include "app/train_watch.h"
#include "base/json.h"
#include "train/full.h"

namespace molly::app {
namespace {

void tell(const Terminal& terminal, const train::FullOutcome& outcome) {
    if (terminal.json) {
        terminal.line(
            to_text(json::value(json::object{{"finished", true},
                                             {"model", outcome.model.string()},
                                             {"steps", outcome.last.step},
                                             {"parameters", outcome.parameters},
                                             {"rows", outcome.rows},
                                             {"class", outcome.facts.label_class},
                                             {"held_out_rows", outcome.held_out_rows},
                                             {"held_out_loss_before", outcome.held_out_before},
                                             {"held_out_loss_after", outcome.held_out_after},
                                             {"left_out", outcome.facts.truncated}})));
        return;
    }
    terminal.line(fmt::format("{}: {} {}, {} {}", outcome.model.string(), outcome.rows,
                              terminal.say("rows", "righe"), outcome.last.step,
                              terminal.say("steps", "passi")));
    if (outcome.held_out_rows > 0) {
        terminal.line(fmt::format("{} ({} {}): {:.3f} -> {:.3f}",
                                  terminal.say("held-out loss", "perdita di controllo"),
                                  outcome.held_out_rows, terminal.say("rows", "righe"),
                                  outcome.held_out_before, outcome.held_out_after));
    }
    tell_left_out(terminal, outcome.facts);
    terminal.note(fmt::format("{} {}{}",
                              terminal.say("the weights hold what the rows say, of class",
                                           "i pesi contengono ciò che dicono le righe, di classe"),
                              outcome.facts.label_class,
                              terminal.say("; give the file only to who may read them",
                                           "; dai il file solo a chi può leggerle")));
    terminal.note(fmt::format("{}: molly models import {} --name ...",
                              terminal.say("use it", "per usarlo"), outcome.model.string()));
}

Result<void> finish_run(const General& general, const train::FullOutcome& outcome,
                        const std::filesystem::path& run) {
    if (outcome.finished) {
        tell(general.terminal, outcome);
    } else {
        tell_stopped(general.terminal, run);
    }
    return {};
}

Result<void> train_full(const General& general, const TuningRun& run) {
    const Places places = find_places(general.places);
    train::FullOptions options;
    run.give(options);
    TRY(options.base, find_model(run.base, places));
    options.out = run_folder(places, run);
    TRY(const auto coder, ModelCoder::open(options.base));
    TerminalWatch watch(general.terminal);
    TRY(const train::FullOutcome outcome, train::train_full(options, *coder, watch));
    return finish_run(general, outcome, options.out);
}

}  // namespace

Result<void> resume_full_run(const General& general, const std::string& run,
                             const std::filesystem::path& base) {
    TRY(const auto coder, ModelCoder::open(base));
    TerminalWatch watch(general.terminal);
    TRY(const train::FullOutcome outcome, train::resume_full(run, *coder, watch));
    return finish_run(general, outcome, run);
}

void declare_train_full(Command& train) {
    const auto run = std::make_shared<TuningRun>();
    Command full = train.add("full", {"Train all weights of a small model on answers (SFT)",
                                      "Addestra tutti i pesi di un piccolo modello su risposte"});
    declare_tuning(full, *run,
                   {"JSONL: {\"messages\": [...]} or {\"prompt\": ..., \"completion\": ...}",
                    "JSONL: {\"messages\": [...]} o {\"prompt\": ..., \"completion\": ...}"},
                   {"of the model", "del modello"});
    full.examples(
        {"  molly train full --base runs/nano/model-f16.gguf --data chats.jsonl \\\n"
         "      --name nano-chat --out runs/chat\n",
         "  molly train full --base runs/nano/model-f16.gguf --data chat.jsonl \\\n"
         "      --name nano-chat --out runs/chat\n"});
    full.run(
        [&general = full.general(), run] { return finish(general, train_full(general, *run)); });
}

}  // namespace molly::app
