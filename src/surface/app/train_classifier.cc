#include <fstream>
#include <memory>

#include <fmt/format.h>

#include "app/commands.h"
#include "profile/training.h"

namespace molly::app {
namespace {

struct ClassifierOptions {
    std::string rows;
    std::string out;
    std::uint32_t epochs = profile::TrainOptions{}.epochs;
    std::uint32_t row_bits = profile::TrainOptions{}.row_bits;
    std::uint32_t seed = 1;
};

Result<void> train_classifier(const General& general, const ClassifierOptions& options) {
    const Terminal& terminal = general.terminal;
    TRY(const profile::TrainingRows rows, profile::read_training_rows(options.rows));
    profile::TrainOptions wanted;
    wanted.epochs = options.epochs;
    wanted.row_bits = options.row_bits;
    wanted.seed = options.seed;
    profile::Trained trained;
    {
        ProgressBar bar(std::string(terminal.say("training", "addestramento")));
        TRY(trained, profile::train(rows, wanted, [&](double done) {
                bar.show(static_cast<std::uint64_t>(done * 100), 100);
            }));
    }
    std::ofstream out(options.out, std::ios::binary | std::ios::trunc);
    out << trained.bytes;
    if (!out.flush()) {
        return fail(Error(ErrorCode::unavailable, fmt::format("cannot write {}", options.out))
                        .italian(fmt::format("impossibile scrivere {}", options.out)));
    }
    terminal.line(fmt::format(
        "{}: {} {}, {} {}, {}", options.out, rows.train.size(), terminal.say("rows", "righe"),
        rows.topics.size(), terminal.say("topics", "argomenti"), byte_size(trained.bytes.size())));
    const auto tell = [&](std::string_view english, std::string_view italian,
                          const profile::Honesty& honesty) {
        if (honesty.rows == 0) return;
        terminal.line(fmt::format("{:<14} ECE {:.3f}, {} {:.3f} ({} {})",
                                  terminal.say(english, italian), honesty.error,
                                  terminal.say("loss", "perdita"), honesty.loss, honesty.rows,
                                  terminal.say("rows that fitted nothing", "righe mai adattate")));
    };
    tell("domain", "dominio", trained.held_out.fields);
    tell("task", "compito", trained.held_out.tasks);
    tell("out of scope", "fuori ambito", trained.held_out.scope);
    return {};
}

}  // namespace

void add_train_classifier(Command& train) {
    const auto options = std::make_shared<ClassifierOptions>();
    Command command = train.add(
        "classifier", {"Train the classifier that tells what a request is about",
                       "Addestra il classificatore che dice di che cosa parla una richiesta"});
    command
        .argument("rows", options->rows,
                  {"lines of JSON (docs/routing.md)", "righe JSON (docs/routing.md)"})
        .required_option("--out", options->out, {"file to write", "file da scrivere"})
        .option("--epochs", options->epochs,
                {"readings of the rows (6)", "letture delle righe (6)"}, 100)
        .option("--row-bits", options->row_bits,
                {"size of the model: 2^N rows of 64 bytes (16)",
                 "grandezza del modello: 2^N righe da 64 byte (16)"},
                20)
        .option("--seed", options->seed, {"of everything random (1)", "di tutto il caso (1)"},
                0xFFFF'FFFFU)
        .examples({"  molly train classifier rows.jsonl --out models/profile.bin\n",
                   "  molly train classifier righe.jsonl --out models/profile.bin\n"});
    command.run([&general = command.general(), options] {
        return finish(general, train_classifier(general, *options));
    });
}

}  // namespace molly::app
