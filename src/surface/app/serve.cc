#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "app/commands.h"
#include "app/house.h"
#include "base/coroutine.h"
#include "base/json.h"
#include "base/log.h"
#include "gateway/gateway.h"
#include "seal/seal.h"

namespace molly::app {
namespace {

constexpr std::uint32_t no_port = 1U << 16U;  // the configured one

struct ServeOptions {
    std::string model;
    std::string address;
    std::uint32_t port = no_port;
    bool allow_remote = false;
};

Result<void> check_address(const Config& config) {
    const std::string& address = config.server.address;
    const bool loopback = address.starts_with("127.") || address == "::1" || address == "localhost";
    if (loopback || config.allow_remote) return {};
    return fail(
        Error(ErrorCode::invalid_request,
              fmt::format("{} is not loopback: other machines could connect, and keys would "
                          "travel in clear. If you mean it, set gateway.allow_remote = true "
                          "(or pass --allow-remote)",
                          address))
            .italian(fmt::format("{} non è loopback: altre macchine potrebbero connettersi "
                                 "e le chiavi viaggerebbero in chiaro. Se è voluto, "
                                 "impostare gateway.allow_remote = true (o --allow-remote)",
                                 address)));
}

/// The text of the first key for apps when it was made just now, else empty.
Result<std::string> first_key(House& house) {
    if (house.members().list().size() > 1) return std::string();
    members::Scope scope;
    scope.member = "owner";
    scope.admin = true;
    scope.lowest_class = domain::Sensitivity::public_;
    Result<members::NewKey> made;
    house.threads().run(
        [&]() -> Task<void> { return create_key(house.members(), &house.owner(), scope, made); });
    if (!made) return fail(std::move(made).error());
    return made->text;
}

std::string url_of(const Config& config, std::uint16_t port) {
    std::string host = config.server.address;
    if (host == "0.0.0.0" || host == "::") host = "127.0.0.1";
    if (host.find(':') != std::string::npos) host = "[" + host + "]";
    return fmt::format("http://{}:{}", host, port);
}

void greet_json(const Terminal& terminal, House& house, const Places& places,
                const std::string& url, std::uint16_t port, const std::string& key) {
    json::object out;
    out["event"] = "ready";
    out["url"] = url;
    out["port"] = port;
    out["key"] = key.empty() ? json::value(nullptr) : json::value(key);
    out["data"] = places.data.string();
    out["model"] = house.engine() != nullptr ? json::value(house.engine()->describe().name)
                                             : json::value(nullptr);
    terminal.line(to_text(json::value(std::move(out))));
}

void tell_model(const Terminal& terminal, House& house) {
    if (house.engine() == nullptr) {
        terminal.line(terminal.say("  model     none here: only the declared targets answer",
                                   "  modello   nessuno qui: rispondono solo le destinazioni"));
        return;
    }
    const engine::Description& model = house.engine()->describe();
    terminal.line(fmt::format("  {}{} ({}, {}), {}", terminal.say("model     ", "modello   "),
                              model.name, model.architecture, model.quantization,
                              byte_size(model.file_bytes)));
    if (model.name.find("molly-test") != std::string::npos) {
        terminal.line(terminal.say(
            "            WARNING: this is the test model. Its weights are random, so its answers\n"
            "            are noise. Give it a real one: molly models import FILE.gguf",
            "            ATTENZIONE: è il modello di prova. I suoi pesi sono casuali e le "
            "risposte\n"
            "            sono rumore. Per uno vero: molly models import FILE.gguf"));
    }
}

void tell_key(const Terminal& terminal, const std::string& key) {
    if (key.empty()) {
        terminal.line(terminal.say("  key       as before; another one: molly keys create",
                                   "  chiave    quella di prima; un'altra: molly keys create"));
        return;
    }
    terminal.line(fmt::format("  {}{}", terminal.say("key       ", "chiave    "), key));
    terminal.line(
        terminal.say("            (your admin key: keep it, it is shown this once)",
                     "            (la chiave di amministrazione: conservarla, si vede solo ora)"));
}

bool opens_t3(const Config& config) {
    return std::any_of(config.policy.rules.begin(), config.policy.rules.end(),
                       [](const policy::Rule& rule) { return rule.permit_t3; });
}

void greet(const Terminal& terminal, House& house, const Places& places, const std::string& url,
           const std::string& key) {
    const std::string shown = key.empty() ? "$MOLLY_KEY" : key;
    terminal.line(fmt::format("Molly {} {} {}\n", MOLLY_VERSION,
                              terminal.say("listens on", "ascolta su"), url));
    tell_key(terminal, key);
    tell_model(terminal, house);
    terminal.line(
        fmt::format("  {}{}", terminal.say("data      ", "dati      "), places.data.string()));
    terminal.line(
        opens_t3(house.config())
            ? terminal.say(
                  "  T3        redacted requests that a rule permits: molly policy check\n",
                  "  T3        richieste oscurate che una regola permette: molly policy "
                  "check\n")
            : terminal.say("  T3        closed: somebody else's models get nothing\n",
                           "  T3        chiuso: ai modelli di altri non va nulla\n"));
    terminal.line(terminal.say("Try it:", "Per provare:"));
    terminal.line(
        fmt::format("  curl -N {}/v1/chat/completions -H 'Authorization: Bearer {}' \\\n"
                    "    -H 'Content-Type: application/json' \\\n"
                    "    -d "
                    "'{{\"model\":\"auto\",\"stream\":true,\"messages\":[{{\"role\":\"user\","
                    "\"content\":\"{}\"}}]}}'\n",
                    url, shown, terminal.say("Hello!", "Ciao!")));
    terminal.line(terminal.say("Settings for your apps:", "Impostazioni per le applicazioni:"));
    terminal.line(fmt::format("  OpenAI     OPENAI_BASE_URL={}/v1  OPENAI_API_KEY={}", url, shown));
    terminal.line(
        fmt::format("  Anthropic  ANTHROPIC_BASE_URL={}  ANTHROPIC_API_KEY={}", url, shown));
    terminal.line(fmt::format("  Ollama     OLLAMA_HOST={}  ({})\n", url,
                              terminal.say("needs gateway.ollama_key_id: docs/interfaces.md",
                                           "vuole gateway.ollama_key_id: docs/interfaces.md")));
    terminal.line(terminal.say("What happened: molly traces list. Stop: Ctrl-C.",
                               "Che cosa è successo: molly traces list. Fine: Ctrl-C."));
}

/// Conversations lie in this process's memory: no core file may hold them when it crashes, and no
/// other program of the same user may read them. `MOLLY_CORE=1` leaves both open, for debugging.
void keep_memory_private() {
    if (std::getenv("MOLLY_CORE") != nullptr) return;
    const rlimit none{.rlim_cur = 0, .rlim_max = 0};
    ::setrlimit(RLIMIT_CORE, &none);
    // Core files that are piped to a program ignore the limit.
    ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

/// SIGINT, SIGTERM and SIGHUP are waited for, not handled: nothing runs in a signal handler.
sigset_t stop_signals() {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);
    return signals;
}

Config with_options(Config config, const ServeOptions& options) {
    if (!options.address.empty()) config.server.address = options.address;
    if (options.port != no_port) config.server.port = static_cast<std::uint16_t>(options.port);
    if (options.allow_remote) config.allow_remote = true;
    return config;
}

net::ServerOptions listening(const Config& config) {
    net::ServerOptions options = config.server;
    options.refusal_body = gateway::refusal_body;
    return options;
}

Result<void> serve(const General& general, const ServeOptions& options) {
    keep_memory_private();
    const Terminal& terminal = general.terminal;
    const Places places = find_places(general.places);
    TRY(Config config, read_config(places));
    config = with_options(std::move(config), options);
    TRY_DO(check_address(config));
    // Who starts it by hand reads the greeting; a service's log is read later.
    set_log_level(config.log_level.value_or(
        standard_error_is_terminal() && !terminal.json ? LogLevel::warning : LogLevel::info));

    // Before any thread starts, so that all of them leave the signals to the wait below.
    const sigset_t signals = stop_signals();
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    std::signal(SIGPIPE, SIG_IGN);

    HouseNeeds needs;
    needs.model = options.model;
    needs.local_token = "local-" + seal::random_token(40);
    if (standard_error_is_terminal()) {
        needs.tell = [&](std::string_view english, std::string_view italian) {
            terminal.note(terminal.say(english, italian));
        };
    }
    const std::string token = needs.local_token;
    TRY(const auto house, House::open(std::move(config), places, std::move(needs)));
    TRY(const std::string key, first_key(*house));
    TRY(const auto server,
        net::Server::listen(listening(house->config()), house->threads(), house->handler()));
    const std::uint16_t port = server->port();
    const std::string url = url_of(house->config(), port);
    RunningServer running{house->config().server.address, port, token, ::getpid()};
    if (running.address == "0.0.0.0" || running.address == "localhost")
        running.address = "127.0.0.1";
    if (running.address == "::") running.address = "::1";
    TRY_DO(write_running(places, running));
    if (terminal.json) {
        greet_json(terminal, *house, places, url, port, key);
    } else {
        greet(terminal, *house, places, url, key);
    }
    log_event(LogLevel::info, "ready", {{"url", url}, {"process", running.process}});

    int signal = 0;
    // Refused rules are in the log; the old ones go on.
    while (sigwait(&signals, &signal) == 0 && signal == SIGHUP)
        (void)house->reload_rules();
    pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);  // a second one ends it at once
    log_event(LogLevel::info, "stopping", {{"signal", signal}});
    std::error_code fault;
    std::filesystem::remove(places.server_file(), fault);
    server->stop(house->config().stop_patience);
    return {};
}

}  // namespace

void add_serve(Command& root) {
    Command command =
        root.add("serve", {"Start Molly on this machine", "Avvia Molly su questa macchina"});
    const auto options = std::make_shared<ServeOptions>();
    command
        .option("--model", options->model,
                {"model file or name, instead of the configured one",
                 "file o nome del modello, invece di quello configurato"})
        .option("--address", options->address,
                {"where to listen (default 127.0.0.1)", "dove ascoltare (127.0.0.1)"})
        .option(
            "--port", options->port,
            {"port, 0 for any free one (default 8484)", "porta, 0 per una libera (di solito 8484)"},
            65535)
        .flag("--allow-remote", options->allow_remote,
              {"let other machines connect", "lascia connettere altre macchine"})
        .examples({"  molly serve\n"
                   "  molly serve --port 0 --json      # prints one line with url and key\n"
                   "  molly serve --model ~/models/qwen2.5-0.5b-instruct-q4_k_m.gguf\n",
                   "  molly serve\n"
                   "  molly serve --port 0 --json      # stampa una riga con url e chiave\n"
                   "  molly serve --model ~/models/qwen2.5-0.5b-instruct-q4_k_m.gguf\n"});
    command.run([&general = command.general(), options] {
        return finish(general, serve(general, *options));
    });
}

}  // namespace molly::app
