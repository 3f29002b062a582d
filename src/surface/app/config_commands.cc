#include <fmt/format.h>

#include "app/commands.h"
#include "app/house.h"

namespace molly::app {
namespace {

Result<void> check(const General& general, const std::string& file) {
    PlaceOptions options = general.places;
    if (!file.empty()) options.config = file;
    const Places places = find_places(options);
    TRY(const Config config, read_config(places));
    TRY(const auto annotator, annotate::Annotator::make(config.labels));
    for (const auto& target : config.targets) {
        TRY_DO(read_upstream_key(*target));
    }
    const std::string name =
        places.config.empty()
            ? std::string(general.terminal.say("built-in defaults", "valori predefiniti"))
            : places.config.string();
    if (general.terminal.json) {
        general.terminal.line("{\"sound\":true}");
    } else {
        general.terminal.line(
            fmt::format("{}: {}, {} {}, {} {}", name, general.terminal.say("good", "va bene"),
                        config.targets.size(), general.terminal.say("targets", "destinazioni"),
                        config.labels.rules.size() + config.policy.rules.size(),
                        general.terminal.say("rules", "regole")));
    }
    return {};
}

}  // namespace

void add_config(Command& root) {
    General& general = root.general();
    Command command =
        root.add("config", {"Check the configuration, or print the default one",
                            "Controlla la configurazione, o stampa quella predefinita"});
    constexpr std::string_view examples =
        "  mkdir -p ~/.config/molly && molly config default > ~/.config/molly/molly.toml\n"
        "  molly config check\n";
    command.group().examples({examples, examples});
    const auto file = std::make_shared<std::string>();
    command
        .add("check",
             {"Say whether a file is good, line by line", "Dice se un file va bene, riga per riga"})
        .optional_argument("file", *file, {"default: the one in use", "di solito: quello in uso"})
        .run([&general, file] { return finish(general, check(general, *file)); });
    command
        .add("default", {"Print every option with its default",
                         "Stampa tutte le opzioni con il valore predefinito"})
        .run([&general] {
            general.terminal.raw(default_config());
            return exit_done;
        });
}

void add_version(Command& root) {
    Command command = root.add("version", {"Print the version", "Stampa la versione"});
    command.run([&general = command.general()] {
        general.terminal.line(general.terminal.json
                                  ? fmt::format("{{\"version\":\"{}\"}}", MOLLY_VERSION)
                                  : fmt::format("molly {}", MOLLY_VERSION));
        return exit_done;
    });
}

}  // namespace molly::app
