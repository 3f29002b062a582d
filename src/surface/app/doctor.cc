#include <fstream>
#include <memory>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "app/api.h"
#include "app/commands.h"
#include "app/house.h"
#include "base/coroutine.h"
#include "base/json.h"
#include "net/server.h"

namespace molly::app {
namespace fs = std::filesystem;
namespace {

enum class Verdict : std::uint8_t { good, remark, bad };

struct Finding {
    Verdict verdict = Verdict::good;
    std::string what;
    std::string cure;  ///< empty when nothing has to be done
};

/// Everything that was looked at, in order.
class Examination {
public:
    explicit Examination(const Terminal& terminal) : terminal_(terminal) {}

    void good(std::string what) { findings_.push_back({Verdict::good, std::move(what), ""}); }
    void remark(std::string what, std::string cure) {
        findings_.push_back({Verdict::remark, std::move(what), std::move(cure)});
    }
    void bad(std::string what, std::string cure) {
        findings_.push_back({Verdict::bad, std::move(what), std::move(cure)});
    }
    std::string say(std::string_view english, std::string_view italian) const {
        return std::string(terminal_.say(english, italian));
    }
    const Terminal& terminal() const noexcept { return terminal_; }
    ExitCode report() const;

private:
    const Terminal& terminal_;
    std::vector<Finding> findings_;
};

ExitCode Examination::report() const {
    bool sound = true;
    json::array list;
    for (const Finding& finding : findings_) {
        sound = sound && finding.verdict != Verdict::bad;
        const std::string_view word = finding.verdict == Verdict::good     ? "ok"
                                      : finding.verdict == Verdict::remark ? "note"
                                                                           : "BAD";
        if (terminal_.json) {
            list.push_back(json::object{
                {"verdict", word == "BAD" ? "bad" : std::string(word)},
                {"what", finding.what},
                {"cure", finding.cure.empty() ? json::value(nullptr) : json::value(finding.cure)}});
            continue;
        }
        terminal_.line(fmt::format("{:<5} {}", word, finding.what));
        if (!finding.cure.empty()) terminal_.line(fmt::format("      -> {}", finding.cure));
    }
    if (terminal_.json) {
        json::object out;
        out["sound"] = sound;
        out["findings"] = std::move(list);
        terminal_.line(to_text(json::value(std::move(out))));
    }
    return sound ? exit_done : exit_failed;
}

std::string file_text(const char* path) {
    std::ifstream in(path);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

std::uint64_t memory_bytes(long pages) {
    return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

void examine_machine(Examination& out) {
    const std::uint64_t memory = memory_bytes(sysconf(_SC_PHYS_PAGES));
    out.good(fmt::format("{} {}, {} {}", std::thread::hardware_concurrency(),
                         out.say("cores", "core"), byte_size(memory),
                         out.say("memory", "memoria")));
    const std::string cpu = file_text("/proc/cpuinfo");
    if (cpu.find(" avx512f") != std::string::npos || cpu.find(" avx2") != std::string::npos) {
        out.good(cpu.find(" avx512f") != std::string::npos ? "AVX-512" : "AVX2");
    } else if (cpu.find("asimd") != std::string::npos) {
        out.good("NEON");
    } else {
        out.remark(out.say("the processor has no AVX2", "il processore non ha AVX2"),
                   out.say("local answers will be slow; a T1 target helps",
                           "le risposte locali saranno lente; una destinazione T1 aiuta"));
    }
}

void examine_model(Examination& out, const Config& config, const Places& places) {
    if (!config.engine.enabled) {
        out.remark(out.say("the local engine is switched off", "il motore locale è spento"),
                   "engine.enabled = true");
        return;
    }
    const auto file = find_model(config.engine.model, places);
    if (!file) {
        out.bad(out.say("no local model", "nessun modello locale"),
                message_in(file.error(), out.terminal().language));
        return;
    }
    std::error_code fault;
    const std::uint64_t bytes = fs::file_size(*file, fault);
    out.good(
        fmt::format("{} {} ({})", out.say("model", "modello"), file->string(), byte_size(bytes)));
    if (file->filename() == "molly-test.gguf") {
        out.remark(out.say("it is the test model: its answers are noise",
                           "è il modello di prova: le risposte sono rumore"),
                   "molly models import FILE.gguf");
    }
    const std::uint64_t free = memory_bytes(sysconf(_SC_AVPHYS_PAGES));
    if (bytes > memory_bytes(sysconf(_SC_PHYS_PAGES)) / 10 * 9) {
        out.bad(fmt::format(
                    "{} ({} {})",
                    out.say("the model does not fit in memory", "il modello non sta in memoria"),
                    byte_size(free), out.say("free", "liberi")),
                out.say("take a smaller one or a stronger quantization",
                        "prenderne uno più piccolo o più quantizzato"));
    }
}

/// The engine finds its computing backends as files; without one it cannot start.
void examine_backends(Examination& out, const Config& config) {
    if (!config.engine.enabled) return;
    fs::path folder = config.engine.limits.backends;
    if (folder.empty()) folder = MOLLY_LLAMA_LIBRARIES;
    std::size_t backends = 0;
    std::error_code fault;
    for (const auto& entry : fs::directory_iterator(folder, fault)) {
        if (entry.path().filename().string().starts_with("libggml-cpu")) ++backends;
    }
    if (backends > 0) {
        out.good(fmt::format("{} {} {}", backends, out.say("engine backends in", "backend in"),
                             folder.string()));
    } else {
        out.bad(fmt::format("{} {}", out.say("no engine backend in", "nessun backend in"),
                            folder.string()),
                out.say("tools/setup run, or set engine.backends",
                        "tools/setup run, o impostare engine.backends"));
    }
}

void examine_data(Examination& out, const Places& places) {
    std::error_code fault;
    if (!fs::exists(places.data, fault)) {
        out.good(fmt::format("{} {} {}", out.say("data folder", "cartella dei dati"),
                             places.data.string(), out.say("(will be made)", "(sarà creata)")));
        return;
    }
    const fs::perms open = fs::perms::group_all | fs::perms::others_all;
    if ((fs::status(places.data, fault).permissions() & open) != fs::perms::none) {
        out.bad(fmt::format("{} {}", places.data.string(),
                            out.say("is open to others", "è aperta ad altri")),
                fmt::format("chmod 700 {}", places.data.string()));
    } else {
        out.good(fmt::format("{} {}", out.say("data folder", "cartella dei dati"),
                             places.data.string()));
    }
    for (const auto& entry : fs::directory_iterator(places.data, fault)) {
        if (entry.path().extension() != ".key") continue;
        if ((entry.status().permissions() & open) == fs::perms::none) continue;
        out.bad(fmt::format("{} {}", entry.path().string(),
                            out.say("can be read by others", "è leggibile da altri")),
                fmt::format("chmod 600 {}", entry.path().string()));
    }
    const fs::space_info space = fs::space(places.data, fault);
    if (!fault && space.available < 1'000'000'000) {
        out.remark(fmt::format("{} {}", byte_size(space.available),
                               out.say("of disk left", "di disco rimasti")),
                   out.say("make room: models and traces need it",
                           "liberare spazio: serve a modelli e tracce"));
    } else if (!fault) {
        out.good(fmt::format("{} {}", byte_size(space.available),
                             out.say("of disk left", "di disco rimasti")));
    }
}

Task<void> refuse(net::HttpRequest&, net::Responder& responder) {
    net::HttpReply reply;
    reply.status = 503;
    [[maybe_unused]] const auto sent = co_await responder.reply(std::move(reply));
}

void examine_port(Examination& out, const Config& config) {
    net::IoThreads threads(1);
    const auto server = net::Server::listen(config.server, threads, refuse);
    const std::string where = fmt::format("{}:{}", config.server.address, config.server.port);
    if (server) {
        out.good(fmt::format("{} {}", where, out.say("is free", "è libera")));
    } else {
        out.bad(fmt::format("{}: {}", where, message_in(server.error(), out.terminal().language)),
                out.say("stop what listens there, or set gateway.port",
                        "fermare chi ascolta lì, o impostare gateway.port"));
    }
}

void examine_targets(Examination& out, Api& api) {
    const auto body = body_of(api.call("GET", "/molly/v1/targets?probe=true"));
    const auto parsed = body ? parse_json(*body) : Result<json::value>(fail(body.error()));
    if (!parsed) {
        out.bad(message_in(parsed.error(), out.terminal().language), "");
        return;
    }
    for (const json::value& value : parsed->as_object().at("targets").as_array()) {
        const json::object& target = value.as_object();
        const std::string name(target.at("name").as_string());
        const json::value* fault = target.if_contains("fault");
        if (fault != nullptr && fault->is_string()) {
            out.bad(fmt::format("{} {}: {}", out.say("target", "destinazione"), name,
                                std::string(fault->get_string())),
                    out.say("start it, or mend its url and key in the configuration",
                            "avviarla, o correggerne url e chiave nella configurazione"));
        } else {
            out.good(fmt::format("{} {}", out.say("target", "destinazione"), name));
        }
    }
}

/// Whether requests with different adapters share the engine, or wait for each other.
void examine_adapters(Examination& out, const json::value* state) {
    if (state == nullptr || !state->is_object()) return;
    const json::value* together = state->get_object().if_contains("together");
    const json::value* layers = state->get_object().if_contains("layers");
    const json::value* kernel = state->get_object().if_contains("kernel");
    if (together == nullptr || !together->is_bool() || layers == nullptr || kernel == nullptr)
        return;
    if (together->get_bool()) {
        out.good(fmt::format("{} ({} {}, {})",
                             out.say("adapters share one batch",
                                     "gli adattatori condividono i "
                                     "calcoli"),
                             to_text(*layers), out.say("layers", "strati"),
                             kernel->is_string() ? std::string(kernel->get_string()) : "?"));
        return;
    }
    out.remark(out.say("adapters run one at a time: requests with different ones wait",
                       "gli adattatori girano uno alla volta: le richieste si aspettano"),
               out.say("engine.adapters_together = true; if it is, this platform or llama.cpp "
                       "does not allow it, and docs/engine.md says more",
                       "engine.adapters_together = true; se lo è già, la piattaforma o llama.cpp "
                       "non lo permettono: docs/engine.md"));
}

/// How much of the engine's one budget is in use.
void examine_memory(Examination& out, const json::value* state) {
    if (state == nullptr || !state->is_object()) return;
    const json::value* bytes = state->get_object().if_contains("bytes");
    const json::value* most = state->get_object().if_contains("bytes_max");
    if (bytes == nullptr || most == nullptr || !bytes->is_number() || !most->is_number()) return;
    const auto mib = [](const json::value& value) { return value.to_number<double>() / 1048576; };
    out.good(fmt::format("{}: {:.1f} {} {:.1f} MiB",
                         out.say("the engine's memory for requests, prefixes and adapters",
                                 "memoria del motore per richieste, prefissi e adattatori"),
                         mib(*bytes), out.say("of", "di"), mib(*most)));
}

void examine_health(Examination& out, Api& api) {
    const auto body = body_of(api.call("GET", "/molly/v1/health"));
    const auto parsed = body ? parse_json(*body) : Result<json::value>(fail(body.error()));
    if (!parsed || !parsed->is_object()) return;
    examine_adapters(out, parsed->get_object().if_contains("adapters"));
    examine_memory(out, parsed->get_object().if_contains("memory"));
    const json::value* state = parsed->get_object().if_contains("t3");
    if (state == nullptr || !state->is_string()) return;
    const std::string word(state->get_string());
    if (word == "open") {
        out.good(out.say("T3 is open to redacted requests, where a rule permits it",
                         "T3 è aperto alle richieste oscurate, dove una regola lo permette"));
    } else if (word.ends_with("no_detection")) {
        out.bad(out.say("T3 is closed: a detector is absent, so nothing can be redacted",
                        "T3 è chiuso: manca un rivelatore, quindi nulla si può oscurare"),
                "detect.enabled = true");
    } else if (word.ends_with("no_permit")) {
        out.remark(out.say("T3 is closed: no rule permits it",
                           "T3 è chiuso: nessuna regola lo "
                           "permette"),
                   out.say("[[policy.rule]] with permit_t3 = true, if that is wanted",
                           "[[policy.rule]] con permit_t3 = true, se lo si vuole"));
    } else {
        out.good(out.say("no target is T3: nothing leaves for third parties",
                         "nessuna destinazione è T3: nulla esce verso terzi"));
    }
}

ExitCode examine(const General& general) {
    const Terminal& terminal = general.terminal;
    Examination out(terminal);
    const Places places = find_places(general.places);
    examine_machine(out);
    const auto config = read_config(places);
    if (!config) {
        out.bad(message_in(config.error(), terminal.language), "molly config check");
        return out.report();
    }
    out.good(fmt::format("{} {}", out.say("configuration", "configurazione"),
                         places.config.empty() ? out.say("(built-in defaults)", "(predefinita)")
                                               : places.config.string()));
    examine_backends(out, *config);
    examine_model(out, *config, places);
    examine_data(out, places);
    const bool runs = find_running(places).has_value();
    if (!runs) examine_port(out, *config);
    const auto api = open_api(places, terminal, ApiOptions());
    if (api) {
        if ((*api)->remote()) out.good(out.say("molly serve answers", "molly serve risponde"));
        examine_targets(out, **api);
        examine_health(out, **api);
    } else {
        out.bad(message_in(api.error(), terminal.language), "");
    }
    return out.report();
}

}  // namespace

void add_doctor(Command& root) {
    Command command = root.add("doctor", {"Say what is wrong, and how to mend it",
                                          "Dice che cosa non va, e come rimediare"});
    command.examples(
        {"  molly doctor\n  molly doctor --json\n", "  molly doctor\n  molly doctor --json\n"});
    command.run([&general = command.general()] { return examine(general); });
}

}  // namespace molly::app
