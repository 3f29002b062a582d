#include "store/audit.h"

#include <memory>

#include <fmt/format.h>

#include "app/api.h"
#include "app/commands.h"
#include "base/clock.h"
#include "base/json.h"
#include "seal/seal.h"

namespace molly::app {
namespace {

struct AuditOptions {
    std::string log;
    std::string head;
    std::string file;
    std::string write;
};

std::filesystem::path log_of(const General& general, const AuditOptions& options) {
    return options.log.empty() ? find_places(general.places).data
                               : std::filesystem::path(options.log);
}

std::string hash_of(const store::AuditReport& report) {
    return seal::from_hex(report.head).value_or(std::string());
}

void print(const Terminal& terminal, const store::AuditReport& report) {
    if (terminal.json) {
        json::object out;
        out["sound"] = report.sound;
        out["receipts"] = report.receipts;
        out["signed_heads"] = report.signed_heads;
        out["unsigned_tail"] = report.unsigned_tail;
        out["head"] = report.head;
        out["signature"] = report.signature;
        out["code"] = store::head_code(report.receipts, hash_of(report));
        out["key_id"] = report.key_id;
        out["keys"] = json::value_from(report.keys);
        out["witnessed"] = report.witnessed;
        out["damage"] = std::string(to_string(report.damage));
        out["fault"] = report.fault.empty()
                           ? json::value(nullptr)
                           : json::value(terminal.say(report.fault, report.fault_italian));
        out["fault_at"] = report.fault_at ? json::value(*report.fault_at) : json::value(nullptr);
        terminal.line(to_text(json::value(std::move(out))));
        return;
    }
    if (report.sound) {
        terminal.line(fmt::format("{}: {} {}, {} {} ({} {})", terminal.say("SOUND", "INTEGRO"),
                                  report.receipts, terminal.say("receipts", "ricevute"),
                                  report.signed_heads,
                                  terminal.say("signed heads", "teste firmate"),
                                  terminal.say("key", "chiave"), report.key_id));
        if (report.keys.size() > 1) {
            terminal.line(fmt::format("{} {}", report.keys.size() - 1,
                                      terminal.say("changes of the signing key, each signed by the "
                                                   "one before",
                                                   "cambi della chiave di firma, ognuno firmato "
                                                   "dalla precedente")));
        }
        if (report.witnessed > 0) {
            terminal.line(fmt::format(
                "{} {}", report.witnessed,
                terminal.say("witnessed heads are in it", "teste testimoniate vi si trovano")));
        }
        if (report.unsigned_tail > 0) {
            terminal.line(fmt::format("{} {}", report.unsigned_tail,
                                      terminal.say("receipts after the last signed head",
                                                   "ricevute dopo l'ultima testa firmata")));
        }
    } else {
        terminal.line(fmt::format("{}: {}", terminal.say("NOT SOUND", "NON INTEGRO"),
                                  terminal.say(report.fault, report.fault_italian)));
        if (report.fault_at)
            terminal.line(fmt::format("{} {} ({})", terminal.say("at receipt", "alla ricevuta"),
                                      *report.fault_at, to_string(report.damage)));
    }
    if (!report.head.empty())
        terminal.line(fmt::format("{} {}", terminal.say("head", "testa"), report.head));
}

/// What the person gave, else the file that the configuration keeps for the default data folder.
Result<std::vector<store::WitnessedHead>> witness_of(const General& general,
                                                     const AuditOptions& options) {
    if (!options.head.empty()) return store::read_witness(options.head);
    if (!options.log.empty()) return std::vector<store::WitnessedHead>();
    const auto config = read_config(find_places(general.places));
    std::error_code ignored;
    if (!config || !std::filesystem::is_regular_file(config->store.witness_file, ignored))
        return std::vector<store::WitnessedHead>();
    return store::read_witness(config->store.witness_file.string());
}

ExitCode verify(const General& general, const AuditOptions& options) {
    auto witnessed = witness_of(general, options);
    if (!witnessed) return general.terminal.failed(witnessed.error());
    const auto report = store::verify_log(log_of(general, options), *std::move(witnessed));
    if (!report) return general.terminal.failed(report.error());
    print(general.terminal, *report);
    return report->sound ? exit_done : exit_unsound;
}

ExitCode head(const General& general, const AuditOptions& options) {
    const Terminal& terminal = general.terminal;
    const auto report = store::verify_log(log_of(general, options));
    if (!report) return terminal.failed(report.error());
    if (!report->sound) {
        print(terminal, *report);
        return exit_unsound;
    }
    if (!options.write.empty() && report->receipts > 0) {
        const store::WitnessedHead noted{
            .sequence = report->receipts,
            .hash = hash_of(*report),
            .key_id = report->key_id,
            .signature = seal::from_hex(report->signature).value_or(std::string())};
        const auto kept = store::append_witness(options.write, noted, system_clock().wall());
        if (!kept) return terminal.failed(kept.error());
    }
    if (terminal.json || report->receipts == 0) {
        print(terminal, *report);
        return exit_done;
    }
    terminal.line(store::head_code(report->receipts, hash_of(*report)));
    terminal.note(fmt::format("{} {}, {} {}", terminal.say("receipt", "ricevuta"), report->receipts,
                              terminal.say("hash", "impronta"), report->head));
    terminal.note(
        terminal.say("print it, read it to somebody, keep it elsewhere; molly audit "
                     "verify --head CODE shows later whether anything was cut or changed",
                     "stamparlo, dettarlo a qualcuno, conservarlo altrove; molly audit "
                     "verify --head CODICE dirà poi se manca o è cambiato qualcosa"));
    return exit_done;
}

Result<void> rotate_key(const General& general) {
    const Terminal& terminal = general.terminal;
    TRY(const auto api, open_api(find_places(general.places), terminal, ApiOptions()));
    TRY(const std::string body, body_of(api->call("POST", "/molly/v1/audit/rotate-key")));
    if (terminal.json) {
        terminal.line(body);
        return {};
    }
    TRY(const json::value changed, parse_json(body));
    const json::object& fields = changed.as_object();
    terminal.line(fmt::format(
        "{} {} {} {} ({} {})", terminal.say("key", "la chiave"),
        std::string_view(fields.at("key_id").as_string()),
        terminal.say("signs from now on, in the place of", "firma da ora, al posto di"),
        std::string_view(fields.at("retired").as_string()), terminal.say("receipt", "ricevuta"),
        fields.at("sequence").to_number<std::uint64_t>()));
    return {};
}

ExitCode export_to(const General& general, const AuditOptions& options) {
    const auto count = store::export_log(find_places(general.places).data, options.file);
    if (!count) return general.terminal.failed(count.error());
    if (general.terminal.json) {
        json::object out;
        out["file"] = options.file;
        out["lines"] = *count;
        general.terminal.line(to_text(json::value(std::move(out))));
    } else {
        general.terminal.note(
            fmt::format("{}: {} {}", options.file, *count, general.terminal.say("lines", "righe")));
    }
    return exit_done;
}

}  // namespace

void add_audit(Command& root) {
    General& general = root.general();
    Command command =
        root.add("audit", {"Check the receipts, offline", "Controlla le ricevute, senza rete"});
    const auto options = std::make_shared<AuditOptions>();
    command.group().examples(
        {"  molly audit verify\n  molly audit head                 # a code to print or dictate\n"
         "  molly audit verify --head CODE\n"
         "  molly audit head --write /media/usb/heads.jsonl\n"
         "  molly audit verify --head /media/usb/heads.jsonl\n"
         "  molly audit export receipts.jsonl && molly audit verify receipts.jsonl\n",
         "  molly audit verify\n  molly audit head                 # un codice da stampare o "
         "dettare\n"
         "  molly audit verify --head CODICE\n"
         "  molly audit head --write /media/usb/teste.jsonl\n"
         "  molly audit verify --head /media/usb/teste.jsonl\n"
         "  molly audit export ricevute.jsonl && molly audit verify ricevute.jsonl\n"});
    constexpr Text log = {"data folder or exported file (default: the data folder)",
                          "cartella dei dati o file esportato (di solito: la cartella dei dati)"};
    command
        .add("verify",
             {"Check hash chain, signatures and keys; say which receipt was tampered with",
              "Controlla catena, firme e chiavi; dice quale ricevuta fu manomessa"})
        .optional_argument("log", options->log, log)
        .option("--head", options->head,
                {"heads noted earlier, as a file, a code or a hash: shows a cut tail (else the "
                 "configured audit.witness_file)",
                 "teste annotate prima, come file, codice o impronta: rivela una coda tagliata (di "
                 "solito audit.witness_file)"})
        .run([&general, options] { return verify(general, *options); });
    command
        .add("export",
             {"Write the receipts as lines of JSON", "Scrive le ricevute come righe JSON"})
        .argument("file", options->file, {"where to", "dove"})
        .run([&general, options] { return export_to(general, *options); });
    command
        .add("head", {"The last receipt as a short code, to keep elsewhere",
                      "L'ultima ricevuta come codice breve, da conservare altrove"})
        .option("--write", options->write,
                {"add it, signed, to this file", "aggiungerla, firmata, a questo file"})
        .optional_argument("log", options->log, log)
        .run([&general, options] { return head(general, *options); });
    command
        .add("rotate-key",
             {"Make a new signing key; the old one signs it into the log and is destroyed",
              "Fa una nuova chiave di firma; la vecchia la firma nel registro e sparisce"})
        .run([&general] { return finish(general, rotate_key(general)); });
}

}  // namespace molly::app
