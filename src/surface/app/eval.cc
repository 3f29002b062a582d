#include <fstream>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "app/commands.h"
#include "base/json.h"
#include "base/log.h"
#include "evaluate/adapters.h"
#include "models/catalogue.h"

namespace molly::app {
namespace {

namespace fs = std::filesystem;

struct EvalOptions {
    std::string base;
    std::string tasks;
    std::string adapters;
    std::string out;
    std::vector<std::string> only;
    std::uint32_t rows = 0;
    std::uint32_t shots = 4;
    std::uint32_t foreign_rows = 100;
    std::uint32_t threads = 0;
    std::string numbers = "f16";
};

/// A GGUF file, or the name of a model that was imported.
Result<fs::path> base_file(const General& general, const std::string& word) {
    std::error_code error;
    if (fs::is_regular_file(word, error)) return fs::path(word);
    TRY(const auto catalogue, models::Catalogue::open(find_places(general.places).data));
    TRY(const models::Model model, catalogue.find(word));
    return model.file;
}

/// "41.3 [36.0, 46.8]", in per cent.
std::string percent(const evaluate::Estimate& estimate) {
    return fmt::format("{:.1f} [{:.1f}, {:.1f}]", 100 * estimate.mean, 100 * estimate.low,
                       100 * estimate.high);
}

/// The same with a sign, in points.
std::string points(const evaluate::Estimate& estimate) {
    return fmt::format("{:+.1f} [{:+.1f}, {:+.1f}]", 100 * estimate.mean, 100 * estimate.low,
                       100 * estimate.high);
}

std::string curve_text(const evaluate::PanelReport& panel) {
    std::string text;
    for (const auto& [rows, exact] : panel.curve)
        text += fmt::format("{}{}: {:.1f}", text.empty() ? "" : ", ", rows, 100 * exact.mean);
    return text;
}

void print(const Terminal& terminal, const evaluate::AdapterReport& report) {
    std::vector<std::vector<std::string>> rows;
    rows.push_back(terminal.words({{"task", "compito"},
                                   {"rows", "righe"},
                                   {"base", "base"},
                                   {"with examples", "con esempi"},
                                   {"specialist", "specialista"},
                                   {"gain", "guadagno"},
                                   {"other task", "altro compito"},
                                   {"curve", "curva"}}));
    for (const evaluate::PanelReport& panel : report.panels) {
        rows.push_back({panel.name, std::to_string(panel.rows), percent(panel.base.exact),
                        fmt::format("{} ({:.1f})", percent(panel.shots.exact), panel.shots_mean),
                        panel.specialist ? percent(panel.specialist->exact) : "-",
                        panel.gain ? points(*panel.gain) : "-",
                        panel.foreign ? fmt::format("{} {:+.1f}", panel.foreign->task,
                                                    100 * panel.foreign->change.mean)
                                      : "-",
                        curve_text(panel)});
    }
    terminal.table(rows);
    terminal.note(fmt::format("{} ({:.1f} M), {:.0f} s. {}", report.base,
                              static_cast<double>(report.parameters) / 1e6, report.seconds,
                              terminal.say("Exact answers in per cent, 95% intervals.",
                                           "Risposte esatte per cento, intervalli al 95%.")));
    if (report.gain_mean) {
        terminal.note(fmt::format("{}: {}", terminal.say("mean gain", "guadagno medio"),
                                  points(*report.gain_mean)));
    }
}

Result<void> eval_adapters(const General& general, const EvalOptions& options) {
    set_log_level(LogLevel::warning);  // here the grades are what counts
    const Terminal& terminal = general.terminal;
    evaluate::AdapterTrial trial;
    TRY(trial.base, base_file(general, options.base));
    trial.tasks = options.tasks;
    trial.adapters = options.adapters;
    trial.only = options.only;
    trial.rows = options.rows;
    trial.shots = options.shots;
    trial.foreign_rows = options.foreign_rows;
    trial.threads = options.threads;
    trial.numbers = engine::adapter_numbers_from(options.numbers).value_or(trial.numbers);
    std::optional<ProgressBar> bar;
    std::string asked;
    TRY(const evaluate::AdapterReport report,
        evaluate::try_adapters(trial,
                               [&](std::string_view what, std::uint64_t done, std::uint64_t total) {
                                   if (what != asked) {
                                       bar.reset();
                                       bar.emplace(std::string(what));
                                       asked = what;
                                   }
                                   bar->show(done, total);
                               }));
    bar.reset();
    const std::string text = to_text(to_json(report));
    if (!options.out.empty()) {
        std::ofstream file(options.out, std::ios::binary | std::ios::trunc);
        file << text << '\n';
        if (!file.flush()) {
            return fail(
                ErrorCode::unavailable,
                fmt::format("cannot write {}; look for space and permissions", options.out));
        }
    }
    if (terminal.json) {
        terminal.line(text);
    } else {
        print(terminal, report);
    }
    return {};
}

void declare_adapters(Command& eval) {
    Command command =
        eval.add("adapters", {"Grade a base bare, with examples, and with a specialist per task",
                              "Valuta una base da sola, con esempi e con uno specialista per "
                              "compito"});
    const auto options = std::make_shared<EvalOptions>();
    command
        .required_option("--base", options->base,
                         {"GGUF model, or the name of an imported one",
                          "modello GGUF, o il nome di uno importato"})
        .required_option("--tasks", options->tasks,
                         {"folder of tasks: tools/specialists/make.py",
                          "cartella dei compiti: tools/specialists/make.py"})
        .option("--adapters", options->adapters,
                {"folder with TASK.gguf, and TASK-ROWS.gguf for learning curves",
                 "cartella con COMPITO.gguf, e COMPITO-RIGHE.gguf per le curve"})
        .option("--only", options->only, {"these tasks only", "solo questi compiti"})
        .option("--rows", options->rows,
                {"of each task at most (0: all)", "di ogni compito al massimo (0: tutte)"},
                1'000'000)
        .option("--shots", options->shots,
                {"examples in the prompt, as far as they fit (4)",
                 "esempi nel prompt, finché ci stanno (4)"},
                64)
        .option("--out-of-domain-rows", options->foreign_rows,
                {"of another task, asked with each adapter (100; 0: none)",
                 "di un altro compito, chieste con ogni adattatore (100; 0: nessuna)"},
                100'000)
        .choice("--adapter-numbers", options->numbers,
                {"how adapters are kept in memory (f16)", "come tenere gli adattatori (f16)"},
                "f16 int8")
        .option("--threads", options->threads, {"0: the free cores", "0: i core liberi"}, 1024)
        .option("--out", options->out, {"JSON file to write", "file JSON da scrivere"})
        .examples({"  molly eval adapters --base molly-nano --tasks rows --adapters adapters\n",
                   "  molly eval adapters --base molly-nano --tasks rows --adapters adapters\n"});
    command.run([&general = command.general(), options] {
        return finish(general, eval_adapters(general, *options));
    });
}

}  // namespace

void add_eval(Command& root) {
    Command command =
        root.add("eval", {"Measure how good answers are", "Misura quanto sono buone le risposte"});
    command.group();
    declare_adapters(command);
    add_eval_router(command);
}

}  // namespace molly::app
