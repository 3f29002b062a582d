#include "train/train.h"

#include <charconv>
#include <cmath>
#include <memory>

#include <fmt/format.h>

#include "app/commands.h"
#include "app/train_full.h"
#include "app/train_lora.h"
#include "app/train_options.h"
#include "app/train_watch.h"
#include "base/json.h"
#include "train/shape.h"
#include "train/tokenizer.h"

namespace molly::app {
namespace {

struct TrainOptions {
    std::vector<std::string> texts;
    std::string tokenizer;
    std::string out;
    std::string preset = "nano-8m";
    std::string precision = "auto";
    std::string name;
    std::string license;
    std::string run;
    double minutes = 0;
    double tokens = 0;
    double learning_rate = 0;
    double checkpoint_minutes = 5;
    std::uint32_t seed = 1;
    std::uint32_t threads = 0;
    std::uint32_t batch = 0;
    std::uint32_t patience = 0;
    std::uint32_t vocabulary = 8192;
};

/// FILE or FILE=WEIGHT.
Result<train::Source> source_of(const std::string& word) {
    train::Source source;
    source.file = word;
    const std::size_t mark = word.rfind('=');
    if (mark == std::string::npos) return source;
    const char* end = word.data() + word.size();
    const auto [read, error] = std::from_chars(word.data() + mark + 1, end, source.weight);
    constexpr double weight_max = 100;
    if (error != std::errc() || read != end || !(source.weight > 0) || source.weight > weight_max) {
        return fail(Error(ErrorCode::invalid_request,
                          "a text is FILE or FILE=WEIGHT, with a weight above 0 and up to 100")
                        .italian("un testo è FILE o FILE=PESO, con un peso sopra 0 e fino a 100")
                        .param("text"));
    }
    source.file = word.substr(0, mark);
    return source;
}

Result<void> train_tokenizer(const General& general, const TrainOptions& options) {
    const Terminal& terminal = general.terminal;
    std::vector<std::filesystem::path> files(options.texts.begin(), options.texts.end());
    ProgressBar bar(std::string(terminal.say("learning", "apprendo")));
    auto tokenizer = train::Tokenizer::train(
        files, options.vocabulary,
        [&bar](std::uint64_t done, std::uint64_t total) { bar.show(done, total); });
    if (!tokenizer) return fail(tokenizer.error());
    TRY_DO(tokenizer->save(options.out));
    if (terminal.json) {
        terminal.line(to_text(json::value(json::object{{"file", options.out},
                                                       {"vocabulary", tokenizer->size()},
                                                       {"sha256", tokenizer->fingerprint()}})));
    } else {
        terminal.line(fmt::format("{}: {} token", options.out, tokenizer->size()));
    }
    return {};
}

void tell(const Terminal& terminal, const train::Outcome& outcome, const std::string& run) {
    if (terminal.json) {
        json::object out;
        out["finished"] = outcome.finished;
        out["step"] = outcome.last.step;
        if (outcome.finished) out["model"] = outcome.model.string();
        terminal.line(to_text(json::value(std::move(out))));
        return;
    }
    if (!outcome.finished) {
        tell_stopped(terminal, run);
        return;
    }
    std::vector<std::vector<std::string>> rows;
    rows.push_back(terminal.words({{"held-out text", "testo di controllo"},
                                   {"perplexity", "perplessità"},
                                   {"bits per byte", "bit per byte"},
                                   {"tokens", "token"}}));
    for (const train::SourceReport& source : outcome.held_out) {
        rows.push_back({source.name, fmt::format("{:.1f}", std::exp(source.loss)),
                        fmt::format("{:.3f}", source.bits_per_byte),
                        std::to_string(source.tokens)});
    }
    terminal.table(rows);
    terminal.note(fmt::format("{}: molly models import {} --name ...",
                              terminal.say("use it", "per usarlo"), outcome.model.string()));
}

Result<void> train_base(const General& general, const TrainOptions& options) {
    train::BaseOptions wanted;
    for (const std::string& word : options.texts) {
        TRY(train::Source source, source_of(word));
        wanted.sources.push_back(std::move(source));
    }
    wanted.tokenizer = options.tokenizer;
    wanted.out = options.out;
    wanted.preset = options.preset;
    wanted.precision = options.precision;
    wanted.name = options.name;
    wanted.license = options.license;
    wanted.minutes = options.minutes;
    wanted.tokens = static_cast<std::uint64_t>(options.tokens);
    wanted.seed = options.seed;
    wanted.threads = options.threads;
    wanted.batch = options.batch;
    wanted.learning_rate = options.learning_rate;
    wanted.checkpoint_minutes = options.checkpoint_minutes;
    wanted.patience = options.patience;
    TerminalWatch watch(general.terminal);
    TRY(const train::Outcome outcome, train::train_base(wanted, watch));
    tell(general.terminal, outcome, options.out);
    return {};
}

Result<void> resume(const General& general, const TrainOptions& options) {
    TRY(const train::RunFacts facts, train::read_facts(options.run));
    if (facts.kind == train::RunKind::adapter)
        return resume_lora_run(general, options.run, facts.base);
    if (facts.kind == train::RunKind::full)
        return resume_full_run(general, options.run, facts.base);
    TerminalWatch watch(general.terminal);
    TRY(const train::Outcome outcome, train::resume(options.run, watch));
    tell(general.terminal, outcome, options.run);
    return {};
}

Result<void> status(const General& general, const TrainOptions& options) {
    const Terminal& terminal = general.terminal;
    TRY(const train::Status now, train::read_status(options.run));
    if (terminal.json) {
        terminal.line(
            to_text(json::value(json::object{{"name", now.name},
                                             {"preset", now.preset},
                                             {"parameters", now.parameters},
                                             {"finished", now.finished},
                                             {"running", now.running},
                                             {"checkpoint", now.checkpoint},
                                             {"step", now.last.step},
                                             {"steps", now.last.steps},
                                             {"tokens", now.last.tokens},
                                             {"loss", now.last.loss},
                                             {"held_out_loss", now.last.held_out_loss},
                                             {"tokens_per_second", now.last.tokens_per_second},
                                             {"seconds_left", now.last.seconds_left}})));
        return {};
    }
    const auto row = [&](std::string_view english, std::string_view italian,
                         const std::string& value) {
        terminal.line(fmt::format("{:<16} {}", terminal.say(english, italian), value));
    };
    const std::string_view state = now.finished  ? terminal.say("finished", "finito")
                                   : now.running ? terminal.say("running", "in corso")
                                                 : terminal.say("stopped", "fermo");
    row("model", "modello", fmt::format("{} ({})", now.name, now.preset));
    row("parameters", "parametri",
        fmt::format("{:.1f} M", static_cast<double>(now.parameters) / 1e6));
    row("state", "stato", std::string(state));
    row("step", "passo", fmt::format("{}/{}", now.last.step, now.last.steps));
    row("checkpoint", "salvato al passo", std::to_string(now.checkpoint));
    row("loss", "perdita", fmt::format("{:.3f}", now.last.loss));
    row("held-out loss", "di controllo", fmt::format("{:.3f}", now.last.held_out_loss));
    row("tokens", "token", std::to_string(now.last.tokens));
    if (now.running) row("time left", "tempo restante", clock_text(now.last.seconds_left));
    return {};
}

std::string preset_names() {
    std::string names;
    for (const train::Preset& preset : train::presets())
        names += (names.empty() ? "" : " ") + std::string(preset.name);
    return names;
}

void declare_tokenizer(Command& train, const std::shared_ptr<TrainOptions>& options) {
    Command command = train.add("tokenizer", {"Learn a vocabulary from text files",
                                              "Apprende un vocabolario da file di testo"});
    command.arguments("text", options->texts, {"UTF-8 text files", "file di testo UTF-8"})
        .option("--vocabulary", options->vocabulary,
                {"tokens in all, 512 to 65536 (8192)", "token in tutto, da 512 a 65536 (8192)"},
                65'536)
        .required_option("--out", options->out, {"GGUF file to write", "file GGUF da scrivere"})
        .examples({"  molly train tokenizer it.txt en.txt --out tokenizer.gguf\n",
                   "  molly train tokenizer it.txt en.txt --out tokenizer.gguf\n"});
    command.run([&general = command.general(), options] {
        return finish(general, train_tokenizer(general, *options));
    });
}

void declare_base(Command& train, const std::shared_ptr<TrainOptions>& options) {
    Command command = train.add(
        "base", {"Train a model from random weights", "Addestra un modello da pesi casuali"});
    command
        .option("--text", options->texts,
                {"UTF-8 text files, FILE or FILE=WEIGHT (2: read twice an epoch)",
                 "file di testo UTF-8, FILE o FILE=PESO (2: letto due volte per epoca)"})
        .required_option("--tokenizer", options->tokenizer,
                         {"GGUF file of the vocabulary: molly train tokenizer",
                          "file GGUF del vocabolario: molly train tokenizer"})
        .required_option("--out", options->out,
                         {"folder of the run", "cartella dell'addestramento"})
        .choice("--preset", options->preset, {"size (nano-8m)", "grandezza (nano-8m)"},
                preset_names())
        .option("--minutes", options->minutes,
                {"how long: measures the speed, then fixes the steps",
                 "per quanto: misura la velocità, poi fissa i passi"})
        .option("--tokens", options->tokens,
                {"on how many tokens, instead of minutes", "su quanti token, invece dei minuti"})
        .option("--seed", options->seed, {"of everything random (1)", "di tutto il caso (1)"},
                0xFFFF'FFFFU)
        .option("--threads", options->threads, {"0: one per core", "0: uno per core"}, 1024)
        .option("--batch", options->batch,
                {"sequences of one step (the preset's)", "sequenze di un passo (del preset)"}, 4096)
        .choice("--precision", options->precision,
                {"of products: bf16 where the processor has it (auto)",
                 "dei prodotti: bf16 dove il processore lo ha (auto)"},
                "auto f32 bf16")
        .option("--learning-rate", options->learning_rate,
                {"at its peak (the preset's)", "al massimo (del preset)"})
        .option("--checkpoint-minutes", options->checkpoint_minutes,
                {"between checkpoints (5)", "fra un salvataggio e l'altro (5)"})
        .option("--patience", options->patience,
                {"evaluations without a better held-out loss before it ends early (0: never)",
                 "valutazioni senza miglioramento prima di finire in anticipo (0: mai)"},
                1'000'000)
        .option("--name", options->name, {"of the model", "del modello"})
        .option("--license", options->license,
                {"of the weights, for the file", "dei pesi, per il file"})
        .examples({"  molly train base --text it.txt=2 en.txt --tokenizer tokenizer.gguf \\\n"
                   "      --preset nano-8m --out runs/nano --minutes 90\n",
                   "  molly train base --text it.txt=2 en.txt --tokenizer tokenizer.gguf \\\n"
                   "      --preset nano-8m --out runs/nano --minutes 90\n"});
    command.run([&general = command.general(), options] {
        return finish(general, train_base(general, *options));
    });
}

}  // namespace

void add_train(Command& root) {
    Command command = root.add(
        "train", {"Train models on this device", "Addestra modelli su questo dispositivo"});
    command.group();
    const auto options = std::make_shared<TrainOptions>();
    declare_tokenizer(command, options);
    declare_base(command, options);
    declare_train_lora(command);
    declare_train_full(command);
    add_train_classifier(command);
    Command going_on = command.add("resume", {"Go on with a run from its last checkpoint",
                                              "Riprende un addestramento dall'ultimo salvataggio"});
    going_on.argument("run", options->run, {"its folder", "la sua cartella"});
    going_on.run([&general = going_on.general(), options] {
        return finish(general, resume(general, *options));
    });
    Command look = command.add("status", {"How far a run is", "A che punto è un addestramento"});
    look.argument("run", options->run, {"its folder", "la sua cartella"});
    look.run([&general = look.general(), options] {
        return finish(general, status(general, *options));
    });
}

}  // namespace molly::app
