#include <iostream>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "app/commands.h"
#include "app/question.h"
#include "seal/seal.h"

namespace molly::app {
namespace {

constexpr std::string_view chat_help_english =
    "/class NAME  how sensitive the next turns are    /model NAME  which target\n"
    "/explain     why the last answer came from there /new         forget the conversation\n"
    "/quit        leave (or Ctrl-D)";
constexpr std::string_view chat_help_italian =
    "/class NOME  quanto sono sensibili i turni       /model NOME  quale destinazione\n"
    "/explain     perché l'ultima risposta viene da lì /new        dimentica la conversazione\n"
    "/quit        esce (o Ctrl-D)";

/// One conversation at the terminal.
class Chat {
public:
    Chat(const Terminal& terminal, Api& api, Question question)
        : terminal_(terminal), api_(api), question_(std::move(question)) {
        begin();
    }

    void run() {
        terminal_.note(terminal_.say("Type a message; /help lists the commands.",
                                     "Scrivere un messaggio; /help elenca i comandi."));
        std::string text;
        while (!over_ && read(text)) {
            if (text.starts_with('/')) {
                command(text);
            } else if (!text.empty()) {
                turn(text);
            }
        }
    }

private:
    bool read(std::string& text) const {
        if (standard_input_is_terminal()) terminal_.raw("> ");
        return static_cast<bool>(std::getline(std::cin, text));
    }

    void begin() {
        question_.turns.clear();
        question_.conversation = "chat-" + seal::random_token(16);
    }

    void turn(const std::string& text) {
        question_.turns.push_back({"user", text});
        const auto answer =
            put_question(api_, question_, [this](std::string_view piece) { terminal_.raw(piece); });
        if (!answer) {
            question_.turns.pop_back();
            terminal_.failed(answer.error());
            return;
        }
        terminal_.raw("\n");
        terminal_.note(summary_of(terminal_, *answer));
        question_.turns.push_back({"assistant", answer->text});
        last_receipt_ = answer->receipt;
    }

    void command(const std::string& text) {
        const std::string name = text.substr(0, text.find(' '));
        const std::string rest = name.size() < text.size() ? text.substr(name.size() + 1) : "";
        if (name == "/quit" || name == "/exit") {
            over_ = true;
        } else if (name == "/new") {
            begin();
            terminal_.note(terminal_.say("a new conversation", "una nuova conversazione"));
        } else if (name == "/class") {
            question_.sensitivity = rest;
        } else if (name == "/model") {
            question_.model = rest.empty() ? "auto" : rest;
        } else if (name == "/explain") {
            explain();
        } else {
            terminal_.note(terminal_.say(chat_help_english, chat_help_italian));
        }
    }

    void explain() const {
        if (last_receipt_.empty()) return;
        const auto explanation = explanation_of(api_, terminal_, last_receipt_);
        if (explanation) {
            terminal_.note(*explanation);
        } else {
            terminal_.failed(explanation.error());
        }
    }

    const Terminal& terminal_;
    Api& api_;
    Question question_;
    std::string last_receipt_;
    bool over_ = false;
};

Result<void> chat(const General& general, const Question& question) {
    ApiOptions options;
    options.engine = true;
    TRY(const auto api, open_api(find_places(general.places), general.terminal, options));
    Chat(general.terminal, *api, question).run();
    return {};
}

}  // namespace

void add_chat(Command& root) {
    Command command = root.add(
        "chat", {"Talk with a model at the terminal", "Conversa con un modello nel terminale"});
    const auto question = std::make_shared<Question>();
    command
        .choice("--class", question->sensitivity,
                {"how sensitive it is (default private)", "quanto è sensibile (private)"}, classes)
        .option("--model", question->model,
                {"auto (default) or a target: molly targets",
                 "auto (di solito) o una destinazione: molly targets"})
        .examples({"  molly chat\n  molly chat --class secret --model local\n",
                   "  molly chat\n  molly chat --class secret --model local\n"});
    command.run([&general = command.general(), question] {
        return finish(general, chat(general, *question));
    });
}

}  // namespace molly::app
