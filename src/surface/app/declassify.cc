#include <memory>

#include <fmt/format.h>

#include "app/api.h"
#include "app/commands.h"
#include "base/json.h"

namespace molly::app {
namespace {

struct DeclassifyOptions {
    std::string conversation;
    std::string to;
    std::string reason;
};

Result<void> declassify(const General& general, const DeclassifyOptions& options) {
    const Terminal& terminal = general.terminal;
    if (options.to.empty() || options.reason.empty()) {
        return fail(Error(ErrorCode::invalid_request, "say to which class and why: --to, --reason")
                        .italian("indicare a quale classe e perché: --to, --reason"));
    }
    TRY(const auto api, open_api(find_places(general.places), terminal, ApiOptions()));
    const std::string asked =
        to_text(json::value(json::object{{"conversation", options.conversation},
                                         {"class", options.to},
                                         {"reason", options.reason}}));
    TRY(const std::string body, body_of(api->call("POST", "/molly/v1/declassify", asked, {})));
    if (terminal.json) {
        terminal.line(body);
        return {};
    }
    TRY(const json::value done, parse_json(body));
    terminal.line(fmt::format(
        "{} {} {}. {} {}", options.conversation, terminal.say("counts as", "vale come"), options.to,
        terminal.say("receipt", "ricevuta"), std::string(done.as_object().at("id").as_string())));
    return {};
}

}  // namespace

void add_declassify(Command& root) {
    General& general = root.general();
    const auto options = std::make_shared<DeclassifyOptions>();
    Command command =
        root.add("declassify", {"Lower the label that sticks to a conversation; leaves a receipt",
                                "Abbassa l'etichetta di una conversazione; lascia una ricevuta"});
    constexpr std::string_view example =
        "  molly declassify anna/case-42 --to standard --reason 'the press release is out'\n";
    command.examples({example, example});
    command
        .argument("conversation", options->conversation,
                  {"its name in traces: member/id", "il suo nome nelle tracce: membro/id"})
        .choice("--to", options->to, {"the class (required)", "la classe (obbligatoria)"}, classes)
        .option(
            "--reason", options->reason,
            {"why, without identifiers (required)", "perché, senza identificativi (obbligatorio)"})
        .run([&general, options] { return finish(general, declassify(general, *options)); });
}

}  // namespace molly::app
