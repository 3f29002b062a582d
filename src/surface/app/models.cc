#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "app/commands.h"
#include "base/coroutine.h"
#include "base/json.h"
#include "models/catalogue.h"
#include "models/gguf.h"
#include "net/server.h"

namespace molly::app {
namespace {

struct ModelOptions {
    std::string source;
    std::string name;
    std::string sha256;
    std::string ca_file;
};

json::object to_json(const models::Model& model) {
    return json::object{{"name", model.name},
                        {"file", model.file.string()},
                        {"sha256", model.hash},
                        {"source", model.source},
                        {"bytes", model.bytes},
                        {"architecture", model.architecture},
                        {"quantization", model.quantization},
                        {"parameters", model.parameters},
                        {"context_tokens", model.context_tokens},
                        {"chat_template", model.chat_template}};
}

Result<models::Catalogue> open_catalogue(const General& general) {
    return models::Catalogue::open(find_places(general.places).data);
}

void print_model(const Terminal& terminal, const models::Model& model) {
    if (terminal.json) {
        terminal.line(to_text(json::value(to_json(model))));
        return;
    }
    const auto row = [&](std::string_view english, std::string_view italian,
                         const std::string& value) {
        terminal.line(fmt::format("{:<14} {}", terminal.say(english, italian), value));
    };
    row("name", "nome", model.name);
    row("file", "file", model.file.string());
    row("size", "dimensione", byte_size(model.bytes));
    row("SHA-256", "SHA-256", model.hash);
    row("source", "origine", model.source);
    row("architecture", "architettura", model.architecture);
    row("quantization", "quantizzazione", model.quantization);
    row("parameters", "parametri",
        fmt::format("{:.1f} M", static_cast<double>(model.parameters) / 1e6));
    row("context", "contesto", fmt::format("{} token", model.context_tokens));
    row("chat template", "modello di chat",
        std::string(model.chat_template ? terminal.say("yes", "sì") : terminal.say("no", "no")));
}

Result<void> list(const General& general) {
    const Terminal& terminal = general.terminal;
    TRY(const auto catalogue, open_catalogue(general));
    if (terminal.json) {
        json::array models;
        for (const models::Model& model : catalogue.list())
            models.push_back(to_json(model));
        json::object out;
        out["models"] = std::move(models);
        terminal.line(to_text(json::value(std::move(out))));
        return {};
    }
    if (catalogue.list().empty()) {
        terminal.note(terminal.say(
            "no model yet: molly models import FILE.gguf, or molly models pull https://...",
            "ancora nessun modello: molly models import FILE.gguf, o molly models pull "
            "https://..."));
        return {};
    }
    std::vector<std::vector<std::string>> rows;
    rows.push_back(terminal.words({{"name", "nome"},
                                   {"size", "dimensione"},
                                   {"architecture", "architettura"},
                                   {"quantization", "quantizzazione"}}));
    for (const models::Model& model : catalogue.list())
        rows.push_back(
            {model.name, byte_size(model.bytes), model.architecture, model.quantization});
    terminal.table(rows);
    return {};
}

/// Says where most of the time of a token would go to the output head.
void tell_head(const Terminal& terminal, const models::Model& model) {
    const auto gguf = models::read_gguf(model.file);
    if (!gguf) return;
    const auto tensor = [&](std::string_view name) {
        return std::find_if(gguf->tensors.begin(), gguf->tensors.end(),
                            [name](const models::GgufTensor& each) { return each.name == name; });
    };
    const auto own = tensor("output.weight");
    const auto head = own != gguf->tensors.end() ? own : tensor("token_embd.weight");
    constexpr std::uint64_t large_share = 4;
    if (head == gguf->tensors.end() || head->type == "q4_0" ||
        head->bytes * large_share < model.bytes)
        return;
    terminal.note(fmt::format(
        "{}: molly models optimize {}",
        terminal.say(
            "every token reads its output head, a large part of it; a copy with a smaller one",
            "ogni token ne legge la testa di uscita, che è gran parte; una copia con "
            "una più piccola"),
        model.name));
}

void tell_use(const Terminal& terminal, const models::Model& model) {
    print_model(terminal, model);
    if (terminal.json) return;
    tell_head(terminal, model);
    terminal.note(fmt::format("{}: molly serve --model {}", terminal.say("use it", "per usarlo"),
                              model.name));
}

Result<void> import(const General& general, const ModelOptions& options) {
    TRY(auto catalogue, open_catalogue(general));
    ProgressBar bar(std::string(general.terminal.say("checking", "controllo")));
    const auto model = catalogue.import(
        options.source, options.name,
        [&bar](std::uint64_t done, std::uint64_t total) { bar.show(done, total); });
    if (!model) return fail(model.error());
    tell_use(general.terminal, *model);
    return {};
}

/// What a download needs while it runs.
struct Pull {
    models::Catalogue catalogue;
    std::unique_ptr<net::Connector> connector;
    policy::PolicyEngine policy;
    models::PullOptions options;
    models::Progress progress;
    Result<models::Model> outcome = fail(ErrorCode::internal, "the download did not run");
};

Task<void> run_pull(Pull& pull) {
    pull.outcome = co_await models::pull(pull.catalogue, *pull.connector, pull.policy, pull.options,
                                         pull.progress);
}

Result<void> pull(const General& general, const ModelOptions& options) {
    TRY(auto catalogue, open_catalogue(general));
    TRY(const Config config, read_config(find_places(general.places)));
    models::PullOptions wanted;
    wanted.source = options.source;
    wanted.name = options.name;
    wanted.sha256 = options.sha256;
    wanted.ca_file = options.ca_file;
    ProgressBar bar(std::string(general.terminal.say("downloading", "scarico")));
    Pull work{std::move(catalogue), net::make_connector(), policy::PolicyEngine(config.policy),
              std::move(wanted),
              [&bar](std::uint64_t done, std::uint64_t total) { bar.show(done, total); }};
    net::IoThreads threads(1);
    threads.run([&work]() -> Task<void> { return run_pull(work); });
    if (!work.outcome) return fail(work.outcome.error());
    tell_use(general.terminal, *work.outcome);
    return {};
}

Result<void> remove(const General& general, const std::string& name) {
    TRY(auto catalogue, open_catalogue(general));
    TRY_DO(catalogue.remove(name));
    general.terminal.note(fmt::format("{} {}", name, general.terminal.say("removed", "tolto")));
    return {};
}

Result<void> show(const General& general, const std::string& name) {
    TRY(const auto catalogue, open_catalogue(general));
    TRY(const auto model, catalogue.find(name));
    print_model(general.terminal, model);
    return {};
}

}  // namespace

void add_models(Command& root) {
    General& general = root.general();
    Command command = root.add(
        "models", {"Model files of this machine", "I file dei modelli di questa macchina"});
    const auto options = std::make_shared<ModelOptions>();
    command.group().examples(
        {"  molly models import ~/Downloads/qwen2.5-0.5b-instruct-q4_k_m.gguf --name qwen\n"
         "  molly models pull hf:owner/repo/file.gguf --sha256 HEX\n"
         "  molly serve --model qwen\n",
         "  molly models import ~/Scaricati/qwen2.5-0.5b-instruct-q4_k_m.gguf --name qwen\n"
         "  molly models pull hf:owner/repo/file.gguf --sha256 HEX\n"
         "  molly serve --model qwen\n"});
    constexpr Text keep_name = {"name to keep it under", "nome da dargli"};
    constexpr Text name = {"its name", "il nome"};
    command.add("list", {"What is here", "Che cosa c'è"}).run([&general] {
        return finish(general, list(general));
    });
    command
        .add("pull", {"Download a GGUF file; resumes, checks, records",
                      "Scarica un file GGUF; riprende, controlla, registra"})
        .argument(
            "source", options->source,
            {"https://... or hf:owner/repo/file.gguf", "https://... o hf:owner/repo/file.gguf"})
        .option("--name", options->name, keep_name)
        .option("--sha256", options->sha256, {"expected hash", "impronta attesa"})
        .option("--ca-file", options->ca_file,
                {"accepted authorities (PEM)", "autorità accettate (PEM)"})
        .run([&general, options] { return finish(general, pull(general, *options)); });
    command
        .add("import",
             {"Take in a GGUF file of this machine", "Prende un file GGUF di questa macchina"})
        .argument("file", options->source, {"the .gguf file", "il file .gguf"})
        .option("--name", options->name, keep_name)
        .run([&general, options] { return finish(general, import(general, *options)); });
    add_models_optimize(command);
    command.add("remove", {"Forget a model and its file", "Dimentica un modello e il suo file"})
        .argument("name", options->name, name)
        .run([&general, options] { return finish(general, remove(general, options->name)); });
    command.add("show", {"All about one model", "Tutto di un modello"})
        .argument("name", options->name, name)
        .run([&general, options] { return finish(general, show(general, options->name)); });
}

}  // namespace molly::app
