#include <fstream>
#include <iterator>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "app/commands.h"
#include "base/json.h"
#include "evaluate/classifier_exam.h"
#include "evaluate/router_exam.h"

namespace molly::app {
namespace {

struct ExamOptions {
    std::string file;
    std::string weak;
    std::string strong;
    std::string model;
    std::string save;
    std::string classifier;
    std::uint32_t folds = 10;
    std::uint32_t repeats = 3;
};

Result<std::string> bytes_of(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    if (!in) {
        return fail(Error(ErrorCode::not_found, fmt::format("cannot read {}", file))
                        .italian(fmt::format("impossibile leggere {}", file)));
    }
    return std::string(std::istreambuf_iterator<char>(in), {});
}

Result<std::shared_ptr<const profile::Classifier>> classifier_of(const ExamOptions& options) {
    if (options.classifier.empty()) return profile::Classifier::built_in();
    TRY(const std::string bytes, bytes_of(options.classifier));
    return profile::Classifier::make(bytes);
}

json::value to_json(const evaluate::RouterReport& report) {
    json::array recovered;
    for (const double share : report.curve.recovered)
        recovered.emplace_back(share);
    return json::object{{"rows", report.rows},
                        {"dropped", report.dropped},
                        {"weak", report.weak},
                        {"strong", report.strong},
                        {"always_weak", report.weak_quality},
                        {"always_strong", report.strong_quality},
                        {"oracle", report.oracle_quality},
                        {"apgr", report.curve.apgr},
                        {"apgr_low", report.apgr.low},
                        {"apgr_high", report.apgr.high},
                        {"apgr_random", 0.5},
                        {"apgr_oracle", report.oracle_apgr},
                        {"cpt50", report.curve.cpt50},
                        {"cpt80", report.curve.cpt80},
                        {"recovered", std::move(recovered)},
                        {"aiq", report.quality_average},
                        {"aiq_random", report.random_quality_average},
                        {"decisions_per_s", report.decisions_per_second},
                        {"best_single", report.best_single},
                        {"best_single_quality", report.best_single_quality},
                        {"routed_quality", report.routed_quality},
                        {"best_quality", report.best_quality}};
}

void tell(const Terminal& terminal, const evaluate::RouterReport& report) {
    const auto row = [&](std::string_view english, std::string_view italian,
                         const std::string& value) {
        terminal.line(fmt::format("{:<34} {}", terminal.say(english, italian), value));
    };
    row("prompts", "richieste",
        fmt::format("{} ({} {})", report.rows, report.dropped, terminal.say("dropped", "tolte")));
    row("always weak", "sempre il debole",
        fmt::format("{:.4f}  {}", report.weak_quality, report.weak));
    row("always strong", "sempre il forte",
        fmt::format("{:.4f}  {}", report.strong_quality, report.strong));
    row("oracle of the two", "oracolo fra i due",
        fmt::format("{:.4f}, APGR {:.3f}", report.oracle_quality, report.oracle_apgr));
    row("APGR (random: 0.500)", "APGR (a caso: 0.500)",
        fmt::format("{:.4f}  95% [{:.4f}, {:.4f}]", report.curve.apgr, report.apgr.low,
                    report.apgr.high));
    row("strong calls for 50%, 80% of gap", "chiamate al forte per 50%, 80%",
        fmt::format("{:.1f}%, {:.1f}%", 100 * report.curve.cpt50, 100 * report.curve.cpt80));
    row("average quality (AIQ)", "qualità media (AIQ)",
        fmt::format("{:.4f} ({} {:.4f})", report.quality_average, terminal.say("random", "a caso"),
                    report.random_quality_average));
    row("decisions a second, one core", "decisioni al secondo, un core",
        fmt::format("{:.0f}", report.decisions_per_second));
    std::string curve;
    for (const double share : report.curve.recovered)
        curve += fmt::format(" {:.2f}", share);
    row("gap recovered at 0, 10, ..., 100%", "divario coperto a 0, 10, ..., 100%", curve);
    row("each to its predicted best", "ognuna al migliore previsto",
        fmt::format("{:.4f} ({} {} {:.4f}, {} {:.4f})", report.routed_quality,
                    terminal.say("best single", "miglior singolo"), report.best_single,
                    report.best_single_quality, terminal.say("oracle", "oracolo"),
                    report.best_quality));
}

Result<void> save(const std::string& file, const profile::Predictor& predictor) {
    std::ofstream out(file, std::ios::binary | std::ios::trunc);
    out << predictor.bytes();
    if (out.flush()) return {};
    return fail(Error(ErrorCode::unavailable, fmt::format("cannot write {}", file))
                    .italian(fmt::format("impossibile scrivere {}", file)));
}

Result<void> eval_router(const General& general, const ExamOptions& options) {
    TRY(const evaluate::ScoreTable table, evaluate::read_score_table(options.file));
    TRY(const std::shared_ptr<const profile::Classifier> classifier, classifier_of(options));
    evaluate::RouterExamOptions exam;
    exam.weak = options.weak;
    exam.strong = options.strong;
    exam.folds = std::max(2U, options.folds);
    exam.repeats = std::max(1U, options.repeats);
    std::shared_ptr<const profile::Predictor> predictor;
    if (!options.model.empty()) {
        TRY(const std::string bytes, bytes_of(options.model));
        TRY(predictor, profile::Predictor::make(bytes));
    }
    evaluate::RouterReport report;
    {
        ProgressBar bar(std::string(general.terminal.say("cross-validation", "convalida")));
        TRY(report,
            evaluate::examine_router(table, exam, *classifier, predictor.get(), [&](double done) {
                bar.show(static_cast<std::uint64_t>(done * 100), 100);
            }));
    }
    if (!options.save.empty()) {
        TRY(const std::shared_ptr<const profile::Predictor> learned,
            evaluate::learn(table, exam.predictor, *classifier));
        TRY_DO(save(options.save, *learned));
    }
    if (general.terminal.json) {
        general.terminal.line(to_text(to_json(report)));
    } else {
        tell(general.terminal, report);
    }
    return {};
}

Result<void> eval_classifier(const General& general, const ExamOptions& options) {
    TRY(const std::shared_ptr<const profile::Classifier> classifier, classifier_of(options));
    TRY(const evaluate::ClassifierReport report,
        evaluate::examine_classifier(options.file, *classifier));
    const Terminal& terminal = general.terminal;
    if (terminal.json) {
        terminal.line(
            to_text(json::value(json::object{{"rows", report.rows},
                                             {"fields", report.fields},
                                             {"field_accuracy", report.field_accuracy},
                                             {"field_loss", report.field_loss},
                                             {"field_sureness", report.field_sureness},
                                             {"ece", report.field_calibration.error},
                                             {"ece_floor", report.field_calibration.floor},
                                             {"tasks", report.tasks},
                                             {"task_accuracy", report.task_accuracy},
                                             {"task_ece", report.task_calibration.error},
                                             {"task_ece_floor", report.task_calibration.floor},
                                             {"scopes", report.scopes},
                                             {"scope_auroc", report.scope_area},
                                             {"scope_ece", report.scope_calibration.error},
                                             {"scope_ece_floor", report.scope_calibration.floor},
                                             {"classifier_us_2kb", report.microseconds_2kb}})));
        return {};
    }
    const auto row = [&](std::string_view english, std::string_view italian,
                         const std::string& value) {
        terminal.line(fmt::format("{:<28} {}", terminal.say(english, italian), value));
    };
    const auto honesty = [&](const evaluate::Calibration& one) {
        row("  calibration error (ECE)", "  errore di calibrazione (ECE)",
            fmt::format("{:.3f} ({} {:.3f})", one.error,
                        terminal.say("of a perfect one", "di uno perfetto"), one.floor));
    };
    row("rows", "righe", std::to_string(report.rows));
    if (report.fields > 0) {
        row("domain right", "dominio giusto",
            fmt::format("{:.4f} ({})", report.field_accuracy, report.fields));
        row("how sure on average", "sicurezza media", fmt::format("{:.4f}", report.field_sureness));
        honesty(report.field_calibration);
    }
    if (report.tasks > 0) {
        row("task right", "compito giusto",
            fmt::format("{:.4f} ({})", report.task_accuracy, report.tasks));
        honesty(report.task_calibration);
    }
    if (report.scopes > 0) {
        row("out of scope, AUROC", "fuori ambito, AUROC", fmt::format("{:.3f}", report.scope_area));
        honesty(report.scope_calibration);
    }
    row("2 KiB", "2 KiB", fmt::format("{:.0f} µs", report.microseconds_2kb));
    return {};
}

}  // namespace

void add_eval_router(Command& eval) {
    const auto options = std::make_shared<ExamOptions>();
    const Text other = {"a classifier other than the built-in one",
                        "un classificatore diverso da quello incluso"};
    Command router =
        eval.add("router",
                 {"Send prompts to the right model by their text alone, on a table of scores",
                  "Manda ogni richiesta al modello giusto dal solo testo, su una tabella di voti"});
    router
        .argument(
            "table", options->file,
            {"lines of JSON: prompt, one score a model", "righe JSON: prompt, un voto per modello"})
        .option("--weak", options->weak,
                {"column of the cheap model", "colonna del modello economico"})
        .option("--strong", options->strong, {"column of the dear one", "colonna di quello caro"})
        .option("--folds", options->folds, {"of the cross-validation (10)", "della convalida (10)"},
                100)
        .option("--repeats", options->repeats,
                {"with other folds each (3)", "con altre parti ogni volta (3)"}, 100)
        .option("--model", options->model,
                {"ask this predictor, trained elsewhere, instead of cross-validating",
                 "interroga questo predittore, appreso altrove, invece della convalida"})
        .option("--save", options->save,
                {"learn from the whole table and write the predictor here",
                 "apprende da tutta la tabella e scrive qui il predittore"})
        .option("--classifier", options->classifier, other)
        .examples(
            {"  molly eval router table.jsonl\n  molly eval router table.jsonl --save p.bin\n"
             "  molly eval router other.jsonl --model p.bin\n",
             "  molly eval router tabella.jsonl\n  molly eval router tabella.jsonl --save p.bin\n"
             "  molly eval router altra.jsonl --model p.bin\n"});
    router.run([&general = router.general(), options] {
        return finish(general, eval_router(general, *options));
    });
    Command classifier = eval.add("classifier", {"What the built-in classifier gets right",
                                                 "Che cosa indovina il classificatore"});
    classifier
        .argument("rows", options->file,
                  {"lines of JSON: text, and field, task or out_of_scope",
                   "righe JSON: text, e field, task o out_of_scope"})
        .option("--classifier", options->classifier, other)
        .examples(
            {"  molly eval classifier rows.jsonl\n", "  molly eval classifier righe.jsonl\n"});
    classifier.run([&general = classifier.general(), options] {
        return finish(general, eval_classifier(general, *options));
    });
}

}  // namespace molly::app
