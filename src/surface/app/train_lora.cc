#include "app/train_lora.h"

#include <cmath>
#include <ctime>
#include <fstream>
#include <iterator>
#include <memory>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "adapters/registry.h"
#include "app/house.h"
#include "app/text_coder.h"
#include "app/train_options.h"
#include "app/train_watch.h"
#include "base/json.h"
#include "train/lora.h"

namespace molly::app {
namespace {

struct AdapterRun : TuningRun {
    std::string from, domain, version, instructions, schema;
    std::string modules = "all";
    double alpha = 0, dropout = 0, beta = 0.1, sft_weight = 0;
    std::uint32_t rank = 16;
    bool keep_current = false;
};

/// What registering needs beside what the training says; it travels with the run.
struct Wish {
    std::string domain;
    std::string version;
    bool promote = true;
    adapters::Component component;

    std::string text() const {
        return to_text(json::object{{"domain", domain},
                                    {"version", version},
                                    {"promote", promote},
                                    {"instructions", component.instructions},
                                    {"schema", component.schema}});
    }
    static Wish from(const std::string& text) {
        Wish out;
        const auto parsed = parse_json(text);
        const json::object* in = parsed ? parsed->if_object() : nullptr;
        if (in == nullptr) return out;
        const auto word = [in](const char* key) {
            const json::value* value = in->if_contains(key);
            return value != nullptr && value->is_string() ? std::string(value->get_string())
                                                          : std::string();
        };
        out.domain = word("domain");
        out.version = word("version");
        out.component = {.instructions = word("instructions"), .schema = word("schema")};
        const json::value* promote = in->if_contains("promote");
        out.promote = promote == nullptr || !promote->is_bool() || promote->get_bool();
        return out;
    }
};

adapters::Manifest manifest_of(const train::LoraOutcome& outcome, const Wish& wish) {
    adapters::Manifest out;
    out.name = outcome.name;
    out.version = wish.version;
    out.domain = wish.domain;
    out.component = wish.component;
    out.base.hash = outcome.base_hash;
    if (const auto known = domain::sensitivity_from(outcome.facts.label_class))
        out.label.sensitivity = *known;
    adapters::Training& training = out.training;
    training.method = outcome.method == train::Method::pairs ? "dpo" : "lora";
    training.tool = "molly " MOLLY_VERSION;
    training.finished = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
    training.examples_hash = outcome.facts.hash;
    training.examples = outcome.rows;
    training.tokens = outcome.last.tokens;
    training.steps = outcome.last.step;
    training.seed = outcome.seed;
    training.details["learning_rate"] = fmt::format("{:g}", outcome.learning_rate);
    if (!outcome.license.empty()) training.details["license"] = outcome.license;
    for (const auto& [license, rows] : outcome.facts.licenses)
        training.details["teacher " + license] = fmt::format("{} rows", rows);
    if (outcome.held_out_rows == 0) return out;
    adapters::Evaluation measured;
    measured.set = "held-out rows";
    measured.metric = outcome.method == train::Method::pairs ? "preference_loss" : "loss";
    measured.base = outcome.held_out_base;
    measured.adapter = outcome.held_out_adapter;
    measured.examples = outcome.held_out_rows;
    out.evaluation.push_back(measured);
    return out;
}

void tell(const Terminal& terminal, const train::LoraOutcome& outcome,
          const adapters::Manifest& manifest, const std::string& base) {
    if (terminal.json) {
        json::object out;
        out["finished"] = true;
        out["adapter"] = manifest.id();
        out["model"] = base + "/" + manifest.name;
        out["file"] = outcome.adapter.string();
        out["hash"] = manifest.hash;
        out["steps"] = outcome.last.step;
        out["rows"] = outcome.rows;
        out["held_out_rows"] = outcome.held_out_rows;
        out["held_out_loss_base"] = outcome.held_out_base;
        out["held_out_loss_adapter"] = outcome.held_out_adapter;
        if (outcome.method == train::Method::pairs) out["held_out_accuracy"] = outcome.accuracy;
        out["left_out"] = outcome.facts.truncated;
        terminal.line(to_text(json::value(std::move(out))));
        return;
    }
    terminal.line(fmt::format("{}: {}, {} {}, {} {}", manifest.id(), outcome.adapter.string(),
                              outcome.rows, terminal.say("rows", "righe"), outcome.last.step,
                              terminal.say("steps", "passi")));
    if (outcome.held_out_rows > 0) {
        terminal.line(fmt::format("{} ({} {}): {:.3f} -> {:.3f}",
                                  terminal.say("held-out loss", "perdita di controllo"),
                                  outcome.held_out_rows, terminal.say("rows", "righe"),
                                  outcome.held_out_base, outcome.held_out_adapter));
    }
    if (outcome.method == train::Method::pairs && outcome.held_out_rows > 0) {
        terminal.line(fmt::format("{}: {:.0f}%",
                                  terminal.say("held-out pairs that moved the right way",
                                               "coppie di controllo nella direzione giusta"),
                                  100 * outcome.accuracy));
    }
    tell_left_out(terminal, outcome.facts);
    terminal.note(fmt::format("{}: molly ask --model {}/{} ...",
                              terminal.say("use it", "per usarlo"), base, manifest.name));
}

/// The target that serves the configured model.
std::string local_target(const Places& places) {
    const auto config = read_config(places);
    return config ? config->engine.target.id : "local";
}

Result<void> enter(const General& general, const train::LoraOutcome& outcome,
                   const std::filesystem::path& run) {
    const Terminal& terminal = general.terminal;
    if (!outcome.finished) {
        tell_stopped(terminal, run);
        return {};
    }
    const Places places = find_places(general.places);
    Wish wish = Wish::from(outcome.tag);
    if (wish.version.empty()) {
        TRY(const auto registry, adapters::Registry::open(places.data));
        TRY(wish.version, registry->next_version(outcome.name));
    }
    adapters::ImportOptions importing;
    importing.base = outcome.base;
    importing.promote = wish.promote;
    TRY(const adapters::Manifest manifest,
        adapters::import_adapter(places.data, outcome.adapter, manifest_of(outcome, wish),
                                 importing));
    tell(terminal, outcome, manifest, local_target(places));
    return {};
}

train::LoraOptions options_of(const AdapterRun& run, train::Method method) {
    train::LoraOptions out;
    run.give(out);
    out.from = run.from;
    out.method = method;
    out.rank = run.rank;
    out.alpha = run.alpha;
    out.dropout = run.dropout;
    out.modules = run.modules;
    out.beta = run.beta;
    out.sft_weight = run.sft_weight;
    return out;
}

/// A file's JSON Schema as compact JSON. Errors: not_found, invalid_request.
Result<std::string> read_schema(const std::string& file) {
    if (file.empty()) return std::string();
    std::ifstream in(file, std::ios::binary);
    if (!in) {
        return fail(Error(ErrorCode::not_found, fmt::format("cannot read the schema {}", file))
                        .italian(fmt::format("non si legge lo schema {}", file))
                        .param("schema"));
    }
    const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    const auto parsed = parse_json(text);
    if (parsed && parsed->is_object()) return to_text(*parsed);
    return fail(Error(ErrorCode::invalid_request,
                      fmt::format("{} is no JSON Schema: a JSON object is expected", file))
                    .italian(fmt::format("{} non è uno schema JSON: serve un oggetto JSON", file))
                    .param("schema"));
}

Result<void> train_adapter(const General& general, const AdapterRun& run, train::Method method) {
    const Places places = find_places(general.places);
    train::LoraOptions options = options_of(run, method);
    TRY(options.base, find_model(run.base, places));
    if (!run.version.empty()) TRY_DO(adapters::check_version(run.version));
    options.out = run_folder(places, run);
    TRY(const auto coder, ModelCoder::open(options.base));
    TRY(std::string schema, read_schema(run.schema));
    options.tag = Wish{.domain = run.domain,
                       .version = run.version,
                       .promote = !run.keep_current,
                       .component = {.instructions = run.instructions, .schema = std::move(schema)}}
                      .text();
    TerminalWatch watch(general.terminal);
    TRY(const train::LoraOutcome outcome, train::train_lora(options, *coder, watch));
    return enter(general, outcome, options.out);
}

void declare_common(Command& command, const std::shared_ptr<AdapterRun>& run, Text data) {
    declare_tuning(command, *run, data, {"of the adapter", "dell'adattatore"});
    command.option("--rank", run->rank, {"1 to 256 (16)", "da 1 a 256 (16)"}, 256)
        .option("--alpha", run->alpha,
                {"scale times rank (twice the rank)", "scala per rango (il doppio del rango)"})
        .option("--modules", run->modules,
                {"all, attention, feed_forward, or query,key,value,output,gate,up,down (all)",
                 "all, attention, feed_forward, o query,key,value,output,gate,up,down (all)"})
        .option("--from", run->from,
                {"GGUF adapter to go on from", "adattatore GGUF da cui partire"})
        .option("--adapter-version", run->version,
                {"of the adapter (the next one)", "dell'adattatore (la prossima)"})
        .option("--domain", run->domain,
                {"what it is good at, for the router", "in che cosa è bravo, per l'instradamento"})
        .option("--instructions", run->instructions,
                {"system text for callers who give none", "testo di sistema per chi non ne dà uno"})
        .option("--schema", run->schema,
                {"JSON Schema of the answers, a file, for callers who give no format",
                 "schema JSON delle risposte, un file, per chi non dà un formato"})
        .flag("--keep-current", run->keep_current,
              {"register it without putting it into service",
               "registralo senza metterlo in servizio"});
}

}  // namespace

Result<void> resume_lora_run(const General& general, const std::string& run,
                             const std::filesystem::path& base) {
    TRY(const auto coder, ModelCoder::open(base));
    TerminalWatch watch(general.terminal);
    TRY(const train::LoraOutcome outcome, train::resume_lora(run, *coder, watch));
    return enter(general, outcome, run);
}

void declare_train_lora(Command& train) {
    const auto answers = std::make_shared<AdapterRun>();
    Command lora = train.add(
        "lora", {"Train an adapter on answers (SFT)", "Addestra un adattatore su risposte (SFT)"});
    declare_common(lora, answers,
                   {"JSONL: {\"messages\": [...]} or {\"prompt\": ..., \"completion\": ...}",
                    "JSONL: {\"messages\": [...]} o {\"prompt\": ..., \"completion\": ...}"});
    lora.option("--dropout", answers->dropout,
                {"share, 0 to below 1 (0)", "quota, da 0 a meno di 1 (0)"})
        .examples({"  molly train lora --base molly-nano --data tickets.jsonl --name tickets\n"
                   "  molly ask --model local/tickets \"...\"\n",
                   "  molly train lora --base molly-nano --data ticket.jsonl --name ticket\n"
                   "  molly ask --model local/ticket \"...\"\n"});
    lora.run([&general = lora.general(), answers] {
        return finish(general, train_adapter(general, *answers, train::Method::answers));
    });
    const auto pairs = std::make_shared<AdapterRun>();
    Command dpo = train.add("dpo", {"Train an adapter on preferences (DPO)",
                                    "Addestra un adattatore su preferenze (DPO)"});
    declare_common(dpo, pairs,
                   {"JSONL: {\"prompt\": ..., \"chosen\": ..., \"rejected\": ...}",
                    "JSONL: {\"prompt\": ..., \"chosen\": ..., \"rejected\": ...}"});
    dpo.option("--beta", pairs->beta,
               {"how far it may move from the base: lower is further (0.1)",
                "quanto può allontanarsi dalla base: meno è più (0,1)"})
        .option("--sft-weight", pairs->sft_weight,
                {"of the chosen answer's own loss (0)", "della perdita della risposta scelta (0)"})
        .examples({"  molly train dpo --base molly-nano --data pairs.jsonl --name tickets \\\n"
                   "      --from tickets.gguf\n",
                   "  molly train dpo --base molly-nano --data coppie.jsonl --name ticket \\\n"
                   "      --from ticket.gguf\n"});
    dpo.run([&general = dpo.general(), pairs] {
        return finish(general, train_adapter(general, *pairs, train::Method::pairs));
    });
}

}  // namespace molly::app
