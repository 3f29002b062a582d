#pragma once
// The sub-commands, and what each needs to declare itself. The parser stays behind Command, so that
// one file alone includes it.
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "app/places.h"
#include "app/terminal.h"

namespace CLI {
class App;
}

namespace molly::app {

/// What every command has.
struct General {
    Terminal terminal;
    PlaceOptions places;
};

/// A command's run, bound to its parsed options.
using Run = std::function<ExitCode()>;

/// One sentence in both languages.
struct Text {
    std::string_view english;
    std::string_view italian;
};

/// The words that may follow one command: its sub-commands and options.
struct Words {
    std::string path;  ///< `models pull`; empty for the root
    std::vector<std::string> words;
};

/// The command line as it is declared and, once parsed, what was chosen.
struct CommandLine {
    CLI::App& app;
    General& general;
    Run chosen;
};

/// One command while it is declared. What options write to must live until it has run.
class Command {
public:
    Command(CommandLine& line, CLI::App& app) : line_(&line), app_(&app) {}

    Command add(const char* name, Text what);
    /// It has sub-commands and does nothing by itself.
    Command& group();
    Command& examples(Text text);
    Command& flag(const char* name, bool& out, Text what);
    Command& option(const char* name, std::string& out, Text what);
    /// An option that must be given.
    Command& required_option(const char* name, std::string& out, Text what);
    /// One of `choices`, separated by blanks.
    Command& choice(const char* name, std::string& out, Text what, std::string_view choices);
    Command& choices(const char* name, std::vector<std::string>& out, Text what,
                     std::string_view choices);
    Command& option(const char* name, std::vector<std::string>& out, Text what);
    Command& option(const char* name, std::uint32_t& out, Text what, std::uint32_t max);
    Command& option(const char* name, double& out, Text what);
    /// A word without a name that must be there.
    Command& argument(const char* name, std::string& out, Text what);
    Command& optional_argument(const char* name, std::string& out, Text what);
    /// All words that are left.
    Command& arguments(const char* name, std::vector<std::string>& out, Text what);
    void run(Run run);

    General& general() const noexcept { return line_->general; }
    /// Every command from here downwards.
    std::vector<Words> tree() const;

private:
    std::string said(Text text) const;

    CommandLine* line_;
    CLI::App* app_;
};

/// Tells the error of a command that has one, and gives the exit code.
ExitCode finish(const General& general, const Result<void>& done);

void add_serve(Command& root);
void add_ask(Command& root);
void add_chat(Command& root);
void add_models(Command& root);
/// Below `models`.
void add_models_optimize(Command& models);
void add_adapters(Command& root);
void add_prefixes(Command& root);
void add_train(Command& root);
void add_eval(Command& root);
void add_router(Command& root);
/// Below `train`.
void add_train_classifier(Command& train);
/// Below `eval`.
void add_eval_router(Command& eval);
void add_targets(Command& root);
void add_traces(Command& root);
void add_audit(Command& root);
void add_policy(Command& root);
void add_keys(Command& root);
void add_declassify(Command& root);
void add_doctor(Command& root);
void add_config(Command& root);
void add_completion(Command& root);
void add_version(Command& root);

inline constexpr std::string_view classes = "public standard private secret";

}  // namespace molly::app
