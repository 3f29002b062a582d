#include "app/command_line.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>
#include <sys/stat.h>

#include "app/commands.h"

namespace molly::app {
namespace {

/// The language must be known before the help texts are made.
Language find_language(int count, char** words) {
    for (int i = 1; i < count; ++i) {
        const std::string_view word = words[i];
        if (word.starts_with("--lang=")) return language_of(word.substr(7));
        if (word == "--lang" && i + 1 < count) return language_of(words[i + 1]);
    }
    for (const char* name : {"LC_ALL", "LC_MESSAGES", "LANG"}) {
        const char* value = std::getenv(name);
        if (value != nullptr && *value != '\0') return language_of(value);
    }
    return Language::english;
}

std::vector<std::string> split(std::string_view words) {
    std::vector<std::string> out;
    while (!words.empty()) {
        const std::string_view word = words.substr(0, words.find(' '));
        out.emplace_back(word);
        words.remove_prefix(std::min(word.size() + 1, words.size()));
    }
    return out;
}

/// Only one of `choices`, which the help shows instead of a type.
void narrow(CLI::Option* option, std::string_view choices) {
    std::string shown(choices);
    std::replace(shown.begin(), shown.end(), ' ', '|');
    option->type_name(shown)->check(CLI::IsMember(split(choices)).description(""));
}

/// What the parser itself says, in the person's language. Before any command is added, because
/// commands inherit it.
void speak(CLI::App& app, const Terminal& terminal) {
    const auto say = [&terminal](std::string_view english, std::string_view italian) {
        return std::string(terminal.say(english, italian));
    };
    app.option_defaults()->group(say("Options", "Opzioni"));
    app.set_help_flag("-h,--help", say("this help", "questo aiuto"));
    CLI::FormatterBase& formatter = *app.get_formatter();
    formatter.label("Usage", say("Usage", "Uso"));
    formatter.label("Options", say("Options", "Opzioni"));
    formatter.label("OPTIONS", say("OPTIONS", "OPZIONI"));
    formatter.label("Positionals", say("Words", "Parole"));
    formatter.label("Subcommands", say("Commands", "Comandi"));
    formatter.label("Subcommand", say("Command", "Comando"));
    formatter.label("SUBCOMMAND", say("COMMAND", "COMANDO"));
    formatter.label("SUBCOMMANDS", say("COMMANDS", "COMANDI"));
    formatter.label("REQUIRED", say("(required)", "(obbligatorio)"));
    app.failure_message([terminal](const CLI::App*, const CLI::Error& error) {
        std::string_view kind = terminal.say("wrong use", "uso errato");
        if (error.get_name() == "ExtrasError") kind = terminal.say("not known", "non conosciuto");
        if (error.get_name() == "RequiredError") kind = terminal.say("missing", "manca");
        if (error.get_name() == "ValidationError")
            kind = terminal.say("not allowed", "valore non ammesso");
        return "molly: " + std::string(kind) + ": " + error.what() + "\n" +
               std::string(terminal.say("--help shows how", "--help mostra come")) + "\n";
    });
}

void collect(const CLI::App& app, const std::string& path, std::vector<Words>& out) {
    const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
    Words words;
    words.path = path;
    for (const CLI::App* command : commands)
        words.words.push_back(command->get_name());
    for (const CLI::Option* option : app.get_options()) {
        for (const std::string& name : option->get_lnames())
            words.words.push_back("--" + name);
    }
    out.push_back(std::move(words));
    for (const CLI::App* command : commands)
        collect(*command, path.empty() ? command->get_name() : path + " " + command->get_name(),
                out);
}

void add_general(Command& root, General& general, std::string& language) {
    root.flag("--json", general.terminal.json, {"machine-readable output", "uscita per programmi"});
    root.option("--lang", language,
                {"en or it (default: the locale)", "en o it (di solito: la lingua del sistema)"});
    root.option("--config", general.places.config,
                {"configuration file (else $MOLLY_CONFIG, ~/.config/molly/molly.toml)",
                 "file di configurazione (o $MOLLY_CONFIG, ~/.config/molly/molly.toml)"});
    root.option("--data", general.places.data,
                {"data folder (else $MOLLY_DATA, ~/.local/share/molly)",
                 "cartella dei dati (o $MOLLY_DATA, ~/.local/share/molly)"});
}

void add_commands(Command& root) {
    add_serve(root);
    add_ask(root);
    add_chat(root);
    add_models(root);
    add_adapters(root);
    add_prefixes(root);
    add_train(root);
    add_eval(root);
    add_router(root);
    add_targets(root);
    add_traces(root);
    add_audit(root);
    add_policy(root);
    add_keys(root);
    add_declassify(root);
    add_doctor(root);
    add_config(root);
    add_completion(root);
    add_version(root);
}

constexpr Text purpose = {
    "Molly: one control plane between your apps and language models. It decides where a request\n"
    "may go, and keeps a receipt.",
    "Molly: un piano di controllo fra le tue applicazioni e i modelli. Decide dove può andare una\n"
    "richiesta e ne tiene la ricevuta."};
constexpr Text closing = {
    "Begin with `molly serve`, then `molly ask \"...\"`. Each command has --help with examples.\n"
    "Exit codes: 0 done, 1 failed, 2 wrong use or configuration, 3 denied, 4 not found,\n"
    "5 unavailable now, 6 an audit found a fault.",
    "Si comincia con `molly serve`, poi `molly ask \"...\"`. Ogni comando ha --help con esempi.\n"
    "Codici d'uscita: 0 fatto, 1 fallito, 2 uso o configurazione errati, 3 negato, 4 non\n"
    "trovato, 5 ora non disponibile, 6 la verifica ha trovato un difetto."};

}  // namespace

std::string Command::said(Text text) const {
    return std::string(line_->general.terminal.say(text.english, text.italian));
}

Command Command::add(const char* name, Text what) {
    CLI::App* command = app_->add_subcommand(name, said(what));
    command->group(said({"Commands", "Comandi"}))->fallthrough();
    return {*line_, *command};
}

Command& Command::group() {
    app_->require_subcommand(1);
    return *this;
}

Command& Command::examples(Text text) {
    app_->footer(said({"Examples:\n", "Esempi:\n"}) + said(text));
    return *this;
}

Command& Command::flag(const char* name, bool& out, Text what) {
    app_->add_flag(name, out, said(what));
    return *this;
}

Command& Command::option(const char* name, std::string& out, Text what) {
    app_->add_option(name, out, said(what));
    return *this;
}

Command& Command::required_option(const char* name, std::string& out, Text what) {
    app_->add_option(name, out, said(what))->required();
    return *this;
}

Command& Command::choice(const char* name, std::string& out, Text what, std::string_view choices) {
    narrow(app_->add_option(name, out, said(what)), choices);
    return *this;
}

Command& Command::choices(const char* name, std::vector<std::string>& out, Text what,
                          std::string_view choices) {
    narrow(app_->add_option(name, out, said(what)), choices);
    return *this;
}

Command& Command::option(const char* name, std::vector<std::string>& out, Text what) {
    app_->add_option(name, out, said(what));
    return *this;
}

Command& Command::option(const char* name, std::uint32_t& out, Text what, std::uint32_t max) {
    app_->add_option(name, out, said(what))
        ->type_name("N")
        ->check(CLI::Range(0U, max).description(""));
    return *this;
}

Command& Command::option(const char* name, double& out, Text what) {
    app_->add_option(name, out, said(what))
        ->type_name("N")
        ->check(CLI::Range(0.0, 1e12).description(""));
    return *this;
}

Command& Command::argument(const char* name, std::string& out, Text what) {
    app_->add_option(name, out, said(what))->required();
    return *this;
}

Command& Command::optional_argument(const char* name, std::string& out, Text what) {
    app_->add_option(name, out, said(what));
    return *this;
}

Command& Command::arguments(const char* name, std::vector<std::string>& out, Text what) {
    app_->add_option(name, out, said(what));
    return *this;
}

void Command::run(Run run) {
    app_->callback([line = line_, run = std::move(run)] { line->chosen = run; });
}

std::vector<Words> Command::tree() const {
    std::vector<Words> out;
    collect(*app_, "", out);
    return out;
}

ExitCode finish(const General& general, const Result<void>& done) {
    return done ? exit_done : general.terminal.failed(done.error());
}

int run(int count, char** words) {
    ::umask(S_IRWXG | S_IRWXO);  // what Molly writes is its owner's alone
    General general;
    general.terminal.language = find_language(count, words);
    const Terminal& terminal = general.terminal;
    CLI::App app(std::string(terminal.say(purpose.english, purpose.italian)), "molly");
    speak(app, terminal);
    app.set_version_flag("--version", "molly " MOLLY_VERSION,
                         std::string(terminal.say("this version", "questa versione")));
    app.require_subcommand(0, 1);
    app.footer(std::string(terminal.say(closing.english, closing.italian)));
    CommandLine line{app, general, {}};
    Command root(line, app);
    std::string language;
    add_general(root, general, language);
    add_commands(root);
    try {
        app.parse(count, words);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? exit_done : exit_usage;
    }
    if (line.chosen) return line.chosen();
    terminal.raw(app.help());
    return exit_usage;
}

}  // namespace molly::app
