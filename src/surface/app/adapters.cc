#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "adapters/peft_export.h"
#include "adapters/registry.h"
#include "app/adapter_sizes.h"
#include "app/commands.h"
#include "app/house.h"
#include "base/json.h"
#include "models/catalogue.h"

namespace molly::app {
namespace {

namespace fs = std::filesystem;

struct AdapterOptions {
    std::string source;
    std::string id;
    std::string name;
    std::string version;
    std::string domain;
    std::string base;
    std::string manifest;
    std::string label;
    std::string public_key;
    std::string folder = ".";
    bool keep_current = false;
    bool off = false;
    bool peft = false;
};

Result<std::unique_ptr<adapters::Registry>> open_registry(const General& general) {
    return adapters::Registry::open(find_places(general.places).data);
}

json::object to_json(const adapters::Registry& registry, const adapters::Entry& entry) {
    json::object out;
    const auto value = parse_json(to_text(entry.manifest));
    if (value && value->is_object()) out = value->get_object();
    out["id"] = entry.manifest.id();
    out["current"] = entry.current;
    out["pinned"] = entry.pinned;
    out["file"] = registry.file_of(entry.manifest).string();
    return out;
}

/// The version with what the registry knows of it.
Result<adapters::Entry> entry_of(const adapters::Registry& registry, const std::string& id) {
    TRY(const adapters::Manifest manifest, registry.find(id));
    TRY(const auto entries, registry.list(manifest.name));
    for (const adapters::Entry& entry : entries)
        if (entry.manifest.version == manifest.version) return entry;
    return fail(ErrorCode::not_found, "the adapter was removed just now");
}

Result<void> print(const General& general, const adapters::Registry& registry,
                   const std::string& id) {
    const Terminal& terminal = general.terminal;
    TRY(const adapters::Entry entry, entry_of(registry, id));
    if (terminal.json) {
        terminal.line(to_text(json::value(to_json(registry, entry))));
        return {};
    }
    const adapters::Manifest& manifest = entry.manifest;
    const auto row = [&](std::string_view english, std::string_view italian,
                         const std::string& value) {
        if (!value.empty())
            terminal.line(fmt::format("{:<16} {}", terminal.say(english, italian), value));
    };
    const auto yes = [&](bool is) { return std::string(is ? terminal.say("yes", "sì") : "no"); };
    row("adapter", "adattatore", manifest.id());
    row("serves", "in servizio", yes(entry.current));
    row("pinned", "fissato", yes(entry.pinned));
    row("domain", "dominio", manifest.domain);
    row("base", "base",
        fmt::format("{} ({}, {})", manifest.base.name, manifest.base.architecture,
                    manifest.base.quantization));
    row("base SHA-256", "SHA-256 base", manifest.base.hash);
    row("rank, alpha", "rango, alpha", fmt::format("{}, {}", manifest.rank, manifest.alpha));
    row("modules", "moduli", fmt::format("{}", fmt::join(manifest.modules, " ")));
    row("tensors", "tensori", std::to_string(manifest.tensors));
    row("size", "dimensione", byte_size(manifest.bytes));
    row("SHA-256", "SHA-256", manifest.hash);
    row("label", "etichetta", std::string(domain::to_string(manifest.label.sensitivity)));
    row("made by", "fatto con", manifest.training.tool);
    if (manifest.training.examples > 0) {
        row("trained on", "allenato su",
            fmt::format("{} {}", manifest.training.examples, terminal.say("examples", "esempi")));
    }
    for (const adapters::Evaluation& one : manifest.evaluation)
        row("measured", "misurato",
            fmt::format("{} {}: {:.4g} -> {:.4g}", one.set, one.metric, one.base, one.adapter));
    row("signed by", "firmato da", manifest.signature.public_key);
    return {};
}

Result<void> list(const General& general, const std::string& name) {
    const Terminal& terminal = general.terminal;
    TRY(const auto registry, open_registry(general));
    TRY(const auto entries, registry->list(name));
    if (terminal.json) {
        json::array adapters;
        for (const adapters::Entry& entry : entries)
            adapters.push_back(to_json(*registry, entry));
        json::object out;
        out["adapters"] = std::move(adapters);
        terminal.line(to_text(json::value(std::move(out))));
        return {};
    }
    if (entries.empty()) {
        terminal.note(terminal.say("no adapter yet: molly adapters import FILE.gguf --name NAME",
                                   "ancora nessun adattatore: molly adapters import FILE.gguf "
                                   "--name NOME"));
        return {};
    }
    std::vector<std::vector<std::string>> rows;
    rows.push_back(terminal.words({{"adapter", "adattatore"},
                                   {"serves", "in servizio"},
                                   {"base", "base"},
                                   {"rank", "rango"},
                                   {"size", "dimensione"},
                                   {"domain", "dominio"}}));
    for (const adapters::Entry& entry : entries) {
        const adapters::Manifest& manifest = entry.manifest;
        rows.push_back({manifest.id() + (entry.pinned ? " *" : ""), entry.current ? "x" : "",
                        manifest.base.name, std::to_string(manifest.rank),
                        byte_size(manifest.bytes), manifest.domain});
    }
    terminal.table(rows);
    return {};
}

/// The manifest that was named, or that lies beside the file under its name, or none.
Result<adapters::Manifest> read_manifest(const AdapterOptions& options) {
    fs::path file = options.manifest;
    std::error_code fault;
    if (file.empty()) {
        // Missing the one that is there would lose its label.
        file = fs::path(options.source).replace_extension(".json");
        if (!fs::is_regular_file(file, fault)) file = options.source + ".json";
        if (!fs::is_regular_file(file, fault)) return adapters::Manifest();
    }
    std::ifstream stream(file, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    if (!stream.is_open()) {
        return fail(Error(ErrorCode::not_found, fmt::format("cannot read {}", file.string()))
                        .italian(fmt::format("impossibile leggere {}", file.string())));
    }
    return adapters::manifest_from(text);
}

/// The base's file: the one that is named, else the one that serves. Empty: the registry looks for
/// the one of the manifest.
Result<fs::path> base_file(const General& general, const AdapterOptions& options,
                           const adapters::Manifest& manifest) {
    const Places places = find_places(general.places);
    if (!options.base.empty()) return find_model(options.base, places);
    const auto catalogue = models::Catalogue::open(places.data);
    if (!manifest.base.hash.empty() && catalogue) {
        for (const models::Model& model : catalogue->list())
            if (model.hash == manifest.base.hash) return model.file;
    }
    TRY(const Config config, read_config(places));
    return find_model(config.engine.model, places);
}

Result<void> import(const General& general, const AdapterOptions& options) {
    TRY(const auto registry, open_registry(general));
    TRY(adapters::Manifest manifest, read_manifest(options));
    if (!options.name.empty()) manifest.name = options.name;
    if (manifest.name.empty()) manifest.name = models::model_name_of(options.source);
    if (!options.version.empty()) manifest.version = options.version;
    if (manifest.version.empty()) {
        TRY(manifest.version, registry->next_version(manifest.name));
    }
    if (!options.domain.empty()) manifest.domain = options.domain;
    if (const auto label = domain::sensitivity_from(options.label))
        manifest.label.sensitivity = *label;
    adapters::ImportOptions how;
    TRY(how.base, base_file(general, options, manifest));
    how.promote = !options.keep_current;
    ProgressBar bar(std::string(general.terminal.say("checking", "controllo")));
    how.progress = [&bar](std::uint64_t done, std::uint64_t total) { bar.show(done, total); };
    TRY(const adapters::Manifest taken, registry->import(options.source, std::move(manifest), how));
    TRY_DO(print(general, *registry, taken.id()));
    if (!general.terminal.json) {
        general.terminal.note(fmt::format("{}: \"model\": \"local/{}\"",
                                          general.terminal.say("ask for it", "per usarlo"),
                                          taken.name));
    }
    return {};
}

Result<void> verify(const General& general, const AdapterOptions& options) {
    const Terminal& terminal = general.terminal;
    TRY(const auto registry, open_registry(general));
    TRY(const auto entries, registry->list(adapters::split_id(options.id).first));
    json::array sound;
    for (const adapters::Entry& entry : entries) {
        const std::string id = entry.manifest.id();
        const bool wanted =
            options.id.empty() || options.id == entry.manifest.name || options.id == id;
        if (!wanted) continue;
        TRY_DO(registry->verify(id, options.public_key));
        sound.emplace_back(id);
        if (!terminal.json)
            terminal.line(fmt::format("{} {}", id, terminal.say("is sound", "è integro")));
    }
    if (sound.empty() && !options.id.empty()) return fail(registry->find(options.id).error());
    if (terminal.json) terminal.line(to_text(json::value(json::object{{"sound", sound}})));
    return {};
}

Result<void> promote(const General& general, const std::string& id) {
    TRY(const auto registry, open_registry(general));
    TRY_DO(registry->promote(id));
    return print(general, *registry, id);
}

Result<void> rollback(const General& general, const std::string& name) {
    TRY(const auto registry, open_registry(general));
    TRY(const adapters::Manifest serving, registry->rollback(name));
    return print(general, *registry, serving.id());
}

Result<void> pin(const General& general, const AdapterOptions& options) {
    TRY(const auto registry, open_registry(general));
    TRY_DO(registry->pin(options.id, !options.off));
    return print(general, *registry, options.id);
}

Result<void> show(const General& general, const std::string& id) {
    TRY(const auto registry, open_registry(general));
    return print(general, *registry, id);
}

Result<void> write_out(const General& general, const AdapterOptions& options) {
    TRY(const auto registry, open_registry(general));
    fs::path file;
    if (options.peft) {
        TRY(file, adapters::export_peft(*registry, find_places(general.places).data, options.id,
                                        options.base, options.folder));
    } else {
        TRY(file, registry->write_out(options.id, options.folder));
    }
    if (general.terminal.json) {
        general.terminal.line(to_text(json::value(json::object{{"file", file.string()}})));
    } else {
        general.terminal.line(file.string());
    }
    return {};
}

Result<void> remove(const General& general, const std::string& id) {
    TRY(const auto registry, open_registry(general));
    TRY_DO(registry->remove(id));
    general.terminal.note(fmt::format("{} {}", id, general.terminal.say("removed", "tolto")));
    return {};
}

void add_import(Command& command, const std::shared_ptr<AdapterOptions>& options) {
    General& general = command.general();
    command
        .add("import", {"Take in a GGUF LoRA file or a PEFT folder",
                        "Prende un file GGUF LoRA o una cartella PEFT"})
        .argument("source", options->source,
                  {"the .gguf file, or the folder with adapter_config.json",
                   "il file .gguf, o la cartella con adapter_config.json"})
        .option("--name", options->name,
                {"its name (else the manifest's, else the file's)",
                 "il nome (altrimenti quello del manifesto o del file)"})
        .option("--version", options->version,
                {"1.0.0 and so on (else one more than the newest)",
                 "1.0.0 eccetera (altrimenti una in più della più recente)"})
        .option("--domain", options->domain,
                {"what it is good at, such as law", "in che cosa è bravo, come law"})
        .option("--base", options->base,
                {"model file or name that it was trained on (else the one that serves)",
                 "file o nome del modello di base (altrimenti quello in servizio)"})
        .option("--manifest", options->manifest,
                {"its manifest (else law.json or law.gguf.json beside law.gguf)",
                 "il manifesto (altrimenti legge.json o legge.gguf.json accanto a legge.gguf)"})
        .choice("--class", options->label,
                {"class of what it was trained on (private)",
                 "classe dei dati di allenamento "
                 "(private)"},
                classes)
        .flag("--keep-current", options->keep_current,
              {"do not let it serve yet: molly adapters promote does",
               "non metterlo ancora in servizio: lo fa molly adapters promote"})
        .run([&general, options] { return finish(general, import(general, *options)); });
}

void add_states(Command& command, const std::shared_ptr<AdapterOptions>& options) {
    General& general = command.general();
    constexpr Text id = {"name, or name@version", "nome, o nome@versione"};
    command.add("promote", {"Let a version serve under its name", "Mette in servizio una versione"})
        .argument("id", options->id, {"name@version", "nome@versione"})
        .run([&general, options] { return finish(general, promote(general, options->id)); });
    command
        .add("rollback",
             {"Go back to what was promoted before", "Torna a quella che era in servizio prima"})
        .argument("name", options->id, {"its name", "il nome"})
        .run([&general, options] { return finish(general, rollback(general, options->id)); });
    command.add("pin", {"Keep it in memory once loaded", "Lo tiene in memoria una volta caricato"})
        .argument("id", options->id, id)
        .flag("--off", options->off, {"no longer", "non più"})
        .run([&general, options] { return finish(general, pin(general, *options)); });
    command
        .add("remove", {"Forget a version, or all of a name",
                        "Dimentica una versione, o tutte quelle di un nome"})
        .argument("id", options->id, id)
        .run([&general, options] { return finish(general, remove(general, options->id)); });
}

void add_looks(Command& command, const std::shared_ptr<AdapterOptions>& options) {
    General& general = command.general();
    constexpr Text id = {"name, or name@version", "nome, o nome@versione"};
    command.add("list", {"What is here; * is pinned", "Che cosa c'è; * è fissato"})
        .optional_argument("name", options->id, {"only this name", "solo questo nome"})
        .run([&general, options] { return finish(general, list(general, options->id)); });
    command.add("show", {"All about one version", "Tutto di una versione"})
        .argument("id", options->id, id)
        .run([&general, options] { return finish(general, show(general, options->id)); });
    command
        .add("verify", {"Check hash, signature, numbers and fit again",
                        "Ricontrolla impronta, firma, numeri e forma"})
        .optional_argument("id", options->id, {"one of them (else all)", "uno solo (o tutti)"})
        .option("--public-key", options->public_key,
                {"whose signature is trusted (else this data folder's own)",
                 "di chi è la firma fidata (altrimenti di questa cartella)"})
        .run([&general, options] { return finish(general, verify(general, *options)); });
    command
        .add("export", {"Write the weights and the manifest to a folder",
                        "Scrive pesi e manifesto in una cartella"})
        .argument("id", options->id, id)
        .option("--to", options->folder, {"folder (the current one)", "cartella (quella attuale)"})
        .flag("--peft", options->peft,
              {"as a PEFT folder: adapter_config.json and safetensors",
               "come cartella PEFT: adapter_config.json e safetensors"})
        .option("--base", options->base,
                {"GGUF file of the base, for --peft (the catalogue's)",
                 "file GGUF della base, per --peft (quello del catalogo)"})
        .run([&general, options] { return finish(general, write_out(general, *options)); });
}

}  // namespace

void add_adapters(Command& root) {
    Command command = root.add("adapters", {"LoRA adapters: many specialists on one model",
                                            "Adattatori LoRA: molti specialisti su un modello"});
    command.group().examples(
        {"  molly adapters import law.gguf --name law --domain law\n"
         "  molly ask --model local/law \"...\"        # or \"model\": \"local/law\" in a request\n"
         "  molly adapters import law2.gguf --name law --keep-current\n"
         "  molly ask --model local/law@1.1.0 \"...\"  # try it\n"
         "  molly adapters promote law@1.1.0\n"
         "  molly adapters rollback law\n",
         "  molly adapters import legge.gguf --name legge --domain legge\n"
         "  molly ask --model local/legge \"...\"        # o \"model\": \"local/legge\"\n"
         "  molly adapters import legge2.gguf --name legge --keep-current\n"
         "  molly ask --model local/legge@1.1.0 \"...\"  # per provarlo\n"
         "  molly adapters promote legge@1.1.0\n"
         "  molly adapters rollback legge\n"});
    const auto options = std::make_shared<AdapterOptions>();
    add_looks(command, options);
    declare_adapter_sizes(command);
    add_import(command, options);
    add_states(command, options);
}

}  // namespace molly::app
