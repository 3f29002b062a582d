#include <fstream>
#include <iterator>
#include <memory>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "app/commands.h"
#include "app/house.h"
#include "app/places.h"
#include "base/json.h"
#include "engine/head.h"
#include "models/catalogue.h"
#include "models/gguf.h"
#include "seal/seal.h"

namespace molly::app {
namespace {

namespace fs = std::filesystem;

struct OptimizeOptions {
    std::string model;
    std::string head = "q4_0";
    std::string name;
    std::string text;
    std::uint32_t tokens = 2048;
};

/// What was made, and what it costs.
struct Optimized {
    models::Model model;
    engine::HeadChange head;
    engine::PredictionChange prediction;
};

/// A file that is gone at the end.
class Scratch {
public:
    explicit Scratch(fs::path file) : file_(std::move(file)) {}
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    Scratch(Scratch&&) = delete;
    Scratch& operator=(Scratch&&) = delete;
    ~Scratch() {
        std::error_code ignored;
        fs::remove(file_, ignored);
    }
    const fs::path& file() const { return file_; }

private:
    fs::path file_;
};

Result<std::string> read_text(const std::string& file) {
    if (file.empty()) return std::string();
    std::ifstream stream(file, std::ios::binary);
    if (!stream) {
        return fail(Error(ErrorCode::not_found, fmt::format("cannot read {}", file))
                        .italian(fmt::format("impossibile leggere {}", file)));
    }
    return std::string{std::istreambuf_iterator<char>(stream), {}};
}

Result<Optimized> optimize(const General& general, const OptimizeOptions& options) {
    const Places places = find_places(general.places);
    TRY(const fs::path model, find_model(options.model, places));
    TRY(auto catalogue, models::Catalogue::open(places.data));
    const std::string name =
        options.name.empty()
            ? fmt::format("{}-head-{}", models::model_name_of(model.string()), options.head)
            : options.name;
    TRY_DO(models::check_name(name));
    engine::PredictionOptions how;
    TRY(how.text, read_text(options.text));
    how.tokens = options.tokens;

    ProgressBar reading(std::string(general.terminal.say("reading", "lettura")));
    std::error_code ignored;
    const std::uint64_t bytes = fs::file_size(model, ignored);
    TRY(const seal::Hash hash,
        seal::sha256_file(model, [&](std::uint64_t done) { reading.show(done, bytes); }));
    const Scratch made(catalogue.models_folder() / fmt::format(".head-{}.gguf", ::getpid()));
    Optimized out;
    TRY(out.head,
        engine::requantize_head(model, made.file(), options.head,
                                {{std::string(models::made_from_key), seal::to_hex(hash)}}));
    ProgressBar comparing(std::string(general.terminal.say("comparing", "confronto")));
    how.progress = [&comparing](std::uint64_t done, std::uint64_t total) {
        comparing.show(done, total);
    };
    TRY(out.prediction, engine::compare_predictions(model, made.file(), how));
    TRY(out.model, catalogue.import(made.file(), name, {}));
    return out;
}

json::object to_json(const Optimized& made) {
    return {{"name", made.model.name},
            {"file", made.model.file.string()},
            {"sha256", made.model.hash},
            {"head_before", made.head.from},
            {"head_after", made.head.to},
            {"head_bytes_before", made.head.bytes_before},
            {"head_bytes_after", made.head.bytes_after},
            {"tokens", made.prediction.tokens},
            {"own_text", made.prediction.own_text},
            {"perplexity_before", made.prediction.perplexity_before},
            {"perplexity_after", made.prediction.perplexity_after},
            {"nats", made.prediction.nats},
            {"nats_error", made.prediction.nats_error}};
}

void tell(const Terminal& terminal, const Optimized& made) {
    if (terminal.json) {
        terminal.line(to_text(json::value(to_json(made))));
        return;
    }
    const engine::HeadChange& head = made.head;
    const engine::PredictionChange& change = made.prediction;
    terminal.line(fmt::format("{}: {} ({}) -> {} ({})",
                              terminal.say("output head", "testa di uscita"), head.from,
                              byte_size(head.bytes_before), head.to, byte_size(head.bytes_after)));
    terminal.line(fmt::format("{}: {:.3f} -> {:.3f} ({:+.2f}%)",
                              terminal.say("perplexity", "perplessità"), change.perplexity_before,
                              change.perplexity_after,
                              100 * (change.perplexity_after / change.perplexity_before - 1)));
    terminal.line(fmt::format(
        "{}: {:+.4f} ± {:.4f} nats, {} {}", terminal.say("a token costs", "un token costa"),
        change.nats, change.nats_error, change.tokens,
        change.own_text
            ? terminal.say("tokens that the model wrote itself", "token scritti dal modello stesso")
            : terminal.say("tokens of your text", "token del testo indicato")));
    terminal.note(fmt::format("{}: molly serve --model {}", terminal.say("use it", "per usarlo"),
                              made.model.name));
    terminal.note(terminal.say("adapters of the first file serve it as they are",
                               "gli adattatori del primo file vanno bene così come sono"));
}

Result<void> run_optimize(const General& general, const OptimizeOptions& options) {
    TRY(const Optimized made, optimize(general, options));
    tell(general.terminal, made);
    return {};
}

}  // namespace

void add_models_optimize(Command& models) {
    General& general = models.general();
    const auto options = std::make_shared<OptimizeOptions>();
    models
        .add("optimize",
             {"A copy with a smaller output head, which is read whole for every token; says what "
              "it costs",
              "Una copia con la testa di uscita più piccola, letta per intero a ogni token; dice "
              "quanto costa"})
        .argument("model", options->model,
                  {"a file, or a name of the list", "un file o un nome della lista"})
        .option("--head", options->head,
                {"its new type (q4_0): q4_0 q4_1 q5_0 q5_1 q8_0 q4_K q5_K q6_K f16",
                 "il nuovo tipo (q4_0): q4_0 q4_1 q5_0 q5_1 q8_0 q4_K q5_K q6_K f16"})
        .option("--name", options->name,
                {"name of the copy (MODEL-head-TYPE)", "nome della copia (MODELLO-head-TIPO)"})
        .option("--text", options->text,
                {"a text to compare both on; else what the model itself writes",
                 "un testo su cui confrontarli; altrimenti quel che scrive il modello stesso"})
        .option("--tokens", options->tokens,
                {"how many tokens to compare (2048)", "quanti token confrontare (2048)"}, 1U << 20U)
        .run([&general, options] { return finish(general, run_optimize(general, *options)); });
}

}  // namespace molly::app
