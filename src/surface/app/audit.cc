#include <memory>

#include <fmt/format.h>

#include "app/commands.h"
#include "base/json.h"
#include "store/store.h"

namespace molly::app {
namespace {

struct AuditOptions {
    std::string log;
    std::string head;
    std::string file;
};

std::filesystem::path log_of(const General& general, const AuditOptions& options) {
    return options.log.empty() ? find_places(general.places).data
                               : std::filesystem::path(options.log);
}

void print(const Terminal& terminal, const store::AuditReport& report) {
    if (terminal.json) {
        json::object out;
        out["sound"] = report.sound;
        out["receipts"] = report.receipts;
        out["signed_heads"] = report.signed_heads;
        out["unsigned_tail"] = report.unsigned_tail;
        out["head"] = report.head;
        out["key_id"] = report.key_id;
        out["fault"] = report.fault.empty() ? json::value(nullptr) : json::value(report.fault);
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
        if (report.unsigned_tail > 0) {
            terminal.line(fmt::format("{} {}", report.unsigned_tail,
                                      terminal.say("receipts after the last signed head",
                                                   "ricevute dopo l'ultima testa firmata")));
        }
    } else {
        terminal.line(
            fmt::format("{}: {}", terminal.say("NOT SOUND", "NON INTEGRO"), report.fault));
        if (report.fault_at)
            terminal.line(fmt::format("{} {}", terminal.say("at receipt", "alla ricevuta"),
                                      *report.fault_at));
    }
    if (!report.head.empty())
        terminal.line(fmt::format("{} {}", terminal.say("head", "testa"), report.head));
}

ExitCode verify(const General& general, const AuditOptions& options) {
    const auto report = store::verify_log(log_of(general, options), options.head);
    if (!report) return general.terminal.failed(report.error());
    print(general.terminal, *report);
    return report->sound ? exit_done : exit_unsound;
}

ExitCode head(const General& general, const AuditOptions& options) {
    const auto report = store::verify_log(log_of(general, options));
    if (!report) return general.terminal.failed(report.error());
    if (!report->sound) {
        print(general.terminal, *report);
        return exit_unsound;
    }
    if (general.terminal.json) {
        print(general.terminal, *report);
    } else {
        general.terminal.line(report->head);
        general.terminal.note(general.terminal.say(
            "keep it elsewhere; molly audit verify --head HEX shows later whether anything was cut",
            "conservarla altrove; molly audit verify --head HEX dirà poi se manca qualcosa"));
    }
    return exit_done;
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
        {"  molly audit verify\n  molly audit head\n  molly audit verify --head HEX\n"
         "  molly audit export receipts.jsonl && molly audit verify receipts.jsonl\n",
         "  molly audit verify\n  molly audit head\n  molly audit verify --head HEX\n"
         "  molly audit export ricevute.jsonl && molly audit verify ricevute.jsonl\n"});
    constexpr Text log = {"data folder or exported file (default: the data folder)",
                          "cartella dei dati o file esportato (di solito: la cartella dei dati)"};
    command.add("verify", {"Check hash chain and signatures", "Controlla catena e firme"})
        .optional_argument("log", options->log, log)
        .option("--head", options->head,
                {"a head noted earlier: shows a cut tail",
                 "una testa annotata prima: rivela una coda tagliata"})
        .run([&general, options] { return verify(general, *options); });
    command
        .add("export",
             {"Write the receipts as lines of JSON", "Scrive le ricevute come righe JSON"})
        .argument("file", options->file, {"where to", "dove"})
        .run([&general, options] { return export_to(general, *options); });
    command
        .add("head", {"The hash of the last receipt, to note elsewhere",
                      "L'impronta dell'ultima ricevuta, da annotare altrove"})
        .optional_argument("log", options->log, log)
        .run([&general, options] { return head(general, *options); });
}

}  // namespace molly::app
