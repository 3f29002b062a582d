#include "app/train_options.h"

#include <fmt/format.h>

namespace molly::app {

void TuningRun::give(train::TuningOptions& options) const {
    options.data = data;
    options.held_out = held_out;
    options.name = name;
    options.epochs = epochs;
    options.steps = static_cast<std::uint64_t>(steps);
    options.batch = batch;
    options.context = context;
    options.learning_rate = learning_rate;
    options.held_out_share = held_out_share;
    options.precision = precision;
    options.license = license;
    options.seed = seed;
    options.threads = threads;
    options.patience = patience;
    options.checkpoint_minutes = checkpoint_minutes;
}

void declare_tuning(Command& command, TuningRun& run, Text data, Text name) {
    command
        .required_option("--base", run.base,
                         {"GGUF file, or name of a model that is here (molly models list)",
                          "file GGUF, o nome di un modello presente (molly models list)"})
        .required_option("--data", run.data, data)
        .required_option("--name", run.name, name)
        .option(
            "--held-out", run.held_out,
            {"JSONL to measure on (a share of --data)", "JSONL di controllo (una quota di --data)"})
        .option("--held-out-share", run.held_out_share,
                {"of --data, when no file is given (0.1)", "di --data, senza un file (0,1)"})
        .option("--epochs", run.epochs, {"times through the data (3)", "passate sui dati (3)"})
        .option("--steps", run.steps, {"instead of epochs", "invece delle epoche"})
        .option("--batch", run.batch,
                {"rows or pairs of one step (what suits the data)",
                 "righe o coppie di un passo (secondo i dati)"},
                4096)
        .option("--context", run.context,
                {"tokens of a row (what the data needs)", "token di una riga (secondo i dati)"},
                1U << 20U)
        .option("--learning-rate", run.learning_rate, {"at its peak", "al massimo"})
        .option("--patience", run.patience,
                {"evaluations without a better held-out loss before it ends early (3; 0: never)",
                 "valutazioni senza miglioramento prima di finire in anticipo (3; 0: mai)"},
                1'000'000)
        .option("--seed", run.seed, {"of everything random (1)", "di tutto il caso (1)"},
                0xFFFF'FFFFU)
        .option("--threads", run.threads, {"0: one per core", "0: uno per core"}, 1024)
        .choice("--precision", run.precision,
                {"of products: bf16 where the processor has it (auto)",
                 "dei prodotti: bf16 dove il processore lo ha (auto)"},
                "auto f32 bf16")
        .option("--checkpoint-minutes", run.checkpoint_minutes,
                {"between checkpoints (2)", "fra un salvataggio e l'altro (2)"})
        .option("--out", run.out,
                {"folder of the run (in the data folder)",
                 "cartella dell'addestramento (nella cartella dei dati)"})
        .option("--license", run.license, {"of the weights", "dei pesi"});
}

std::filesystem::path run_folder(const Places& places, const TuningRun& run) {
    if (!run.out.empty()) return run.out;
    const auto under = places.data / "training";
    for (int number = 1;; ++number) {
        auto folder = under / fmt::format("{}-{}", run.name, number);
        if (!std::filesystem::exists(folder / "run.json")) return folder;
    }
}

void tell_stopped(const Terminal& terminal, const std::filesystem::path& run) {
    terminal.note(fmt::format("\n{}: molly train resume {}",
                              terminal.say("stopped; to go on", "fermato; per continuare"),
                              run.string()));
}

void tell_left_out(const Terminal& terminal, const train::ExampleFacts& facts) {
    if (facts.truncated == 0) return;
    terminal.note(fmt::format(
        "{} {}", facts.truncated,
        terminal.say("rows were longer than the context and left out (--context)",
                     "righe più lunghe del contesto non sono state usate (--context)")));
}

}  // namespace molly::app
