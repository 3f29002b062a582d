#include "train/internal/example_row.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include <fmt/format.h>

#include "base/json.h"

namespace molly::train {
namespace {

constexpr std::size_t depth_max = 16;
constexpr std::size_t license_bytes_max = 64;
constexpr std::array<std::string_view, 4> roles = {"system", "user", "assistant", "tool"};

/// Licences under which nobody may train on an answer, or share what came of it. In lower case.
constexpr std::array<std::string_view, 7> forbidding_licenses = {
    "all-rights-reserved", "anthropic-terms", "gemini-terms", "no-training",
    "openai-terms",        "proprietary",     "xai-terms"};

std::unexpected<Error> fault(std::string english, std::string italian) {
    return fail(Error(ErrorCode::invalid_request, std::move(english)).italian(std::move(italian)));
}

/// A name as it was written, when it may stand in a message: names are of the format, not content.
std::string shown(std::string_view name) {
    const bool plain =
        name.size() <= license_bytes_max && std::ranges::all_of(name, [](unsigned char c) {
            return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
        });
    return plain ? std::string(name) : "?";
}

bool blank(std::string_view text) {
    return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

/// Text, or a list of text parts, as the OpenAI dialect has it.
Result<std::string> content_of(const json::value& value, std::string_view where) {
    if (const auto* text = value.if_string()) return std::string(*text);
    const auto* parts = value.if_array();
    if (parts == nullptr) {
        return fault(fmt::format("{} must be text", where),
                     fmt::format("{} deve essere testo", where));
    }
    std::string all;
    for (const json::value& part : *parts) {
        const auto* object = part.if_object();
        const auto* text = object == nullptr ? nullptr : object->if_contains("text");
        if (text == nullptr || !text->is_string()) {
            return fault(fmt::format("{} holds a part that is no text", where),
                         fmt::format("{} contiene una parte che non è testo", where));
        }
        if (!all.empty()) all += '\n';
        all += text->get_string();
    }
    return all;
}

Result<Turn> turn_of(const json::value& value, const std::string& where) {
    const auto* object = value.if_object();
    const auto* role = object == nullptr ? nullptr : object->if_contains("role");
    const auto* content = object == nullptr ? nullptr : object->if_contains("content");
    if (role == nullptr || !role->is_string()) {
        return fault(fmt::format("{} has no role", where), fmt::format("{} non ha role", where));
    }
    Turn turn;
    turn.role = role->get_string();
    if (std::ranges::find(roles, turn.role) == roles.end()) {
        return fault(fmt::format("{}: the role is not system, user, assistant or tool", where),
                     fmt::format("{}: role non è system, user, assistant o tool", where));
    }
    if (object->contains("tool_calls")) {
        return fault(fmt::format("{}: tool calls cannot be learned yet", where),
                     fmt::format("{}: le chiamate di strumenti non si apprendono ancora", where));
    }
    if (const auto* weight = object->if_contains("weight");
        weight != nullptr && *weight != json::value(1)) {
        return fault(fmt::format("{}: weights of turns are not known here", where),
                     fmt::format("{}: i pesi dei turni qui non sono previsti", where));
    }
    if (content == nullptr) {
        return fault(fmt::format("{} has no content", where),
                     fmt::format("{} non ha content", where));
    }
    TRY(turn.text, content_of(*content, where + ".content"));
    return turn;
}

Result<std::vector<Turn>> turns_of(const json::value& value, const std::string& where) {
    const auto* array = value.if_array();
    if (array == nullptr || array->empty() || array->size() > example_turns_max) {
        return fault(
            fmt::format("{} must be a list of 1 to {} turns", where, example_turns_max),
            fmt::format("{} deve essere un elenco di 1-{} turni", where, example_turns_max));
    }
    std::vector<Turn> turns;
    for (std::size_t i = 0; i < array->size(); ++i) {
        TRY(Turn turn, turn_of((*array)[i], fmt::format("{}[{}]", where, i)));
        turns.push_back(std::move(turn));
    }
    return turns;
}

/// The last turn and every other one of the assistant's that is learned must say something.
Result<void> check_answer(const std::vector<Turn>& turns, const std::string& where) {
    if (turns.empty() || turns.back().role != "assistant") {
        return fault(fmt::format("{} must end with a turn of the assistant", where),
                     fmt::format("{} deve finire con un turno di assistant", where));
    }
    const bool silent = std::ranges::any_of(
        turns, [](const Turn& turn) { return turn.role == "assistant" && blank(turn.text); });
    if (!silent) return {};
    return fault(fmt::format("{} holds an empty answer", where),
                 fmt::format("{} contiene una risposta vuota", where));
}

Result<void> read_prompt(const json::value& value, ExampleRow& row) {
    if (!value.is_array()) {
        TRY(row.text, content_of(value, "prompt"));
        if (!blank(row.text)) return {};
        return fault("prompt is empty", "prompt è vuoto");
    }
    TRY(row.turns, turns_of(value, "prompt"));
    if (row.turns.back().role != "assistant") return {};
    return fault("prompt must not end with the assistant", "prompt non deve finire con assistant");
}

Result<Answer> answer_of(const json::object& object, const char* name, const ExampleRow& row) {
    const auto* value = object.if_contains(name);
    if (value == nullptr) {
        return fault(fmt::format("{} is missing", name), fmt::format("manca {}", name));
    }
    Answer answer;
    const bool turns = value->is_array();
    if (turns && row.turns.empty()) {
        return fault(fmt::format("prompt is text, so {} must be text", name),
                     fmt::format("prompt è testo, quindi {} deve essere testo", name));
    }
    if (turns) {
        TRY(answer.turns, turns_of(*value, name));
        TRY_DO(check_answer(answer.turns, name));
        return answer;
    }
    TRY(std::string text, content_of(*value, name));
    if (blank(text))
        return fault(fmt::format("{} is empty", name), fmt::format("{} è vuoto", name));
    if (row.turns.empty()) {
        answer.text = std::move(text);
    } else {
        answer.turns.push_back({"assistant", std::move(text)});
    }
    return answer;
}

Result<void> read_messages(const json::value& value, ExampleRow& row) {
    TRY(auto turns, turns_of(value, "messages"));
    const auto first = std::ranges::find(turns, "assistant", &Turn::role);
    if (first == turns.begin()) {
        return fault("messages must not begin with the assistant",
                     "messages non deve cominciare con assistant");
    }
    Answer answer;
    answer.turns.assign(std::make_move_iterator(first), std::make_move_iterator(turns.end()));
    TRY_DO(check_answer(answer.turns, "messages"));
    turns.erase(first, turns.end());
    row.turns = std::move(turns);
    row.answers.push_back(std::move(answer));
    return {};
}

Result<void> read_label(const json::object& object, ExampleRow& row) {
    const auto* name = object.if_contains("class");
    if (name == nullptr) return {};
    const auto* text = name->if_string();
    const auto known = text == nullptr ? std::nullopt : domain::sensitivity_from(*text);
    if (!known) {
        return fault("class is not public, standard, private or secret",
                     "class non è public, standard, private o secret");
    }
    row.sensitivity = *known;
    return {};
}

Result<void> read_license(const json::object& object, ExampleRow& row) {
    const auto* name = object.if_contains("license");
    if (name == nullptr || name->is_null()) return {};
    const auto* text = name->if_string();
    if (text == nullptr || text->empty() || text->size() > license_bytes_max ||
        !std::ranges::all_of(*text, [](unsigned char c) { return c >= 0x20 && c < 0x7F; })) {
        return fault(
            fmt::format("license must be a name of 1 to {} characters", license_bytes_max),
            fmt::format("license deve essere un nome di 1-{} caratteri", license_bytes_max));
    }
    row.license = *text;
    std::string lower = row.license;
    std::ranges::transform(lower, lower.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    // No derivatives: an adapter is one.
    const bool no_derivatives = lower.starts_with("cc-by") && lower.find("-nd") != lower.npos;
    if (!no_derivatives &&
        std::ranges::find(forbidding_licenses, lower) == forbidding_licenses.end()) {
        return {};
    }
    return fault(fmt::format("the licence {} forbids learning from the answer; take the row out",
                             shown(row.license)),
                 fmt::format("la licenza {} vieta di apprendere dalla risposta; la riga va tolta",
                             shown(row.license)));
}

Result<void> read_permission(const json::object& object) {
    const auto* training = object.if_contains("training");
    if (training == nullptr) return {};
    if (!training->is_bool()) {
        return fault("training is not true or false", "training non è true o false");
    }
    if (training->get_bool()) return {};
    return fault("the row says \"training\": false; take it out",
                 "la riga dice \"training\": false; va tolta");
}

Result<void> read_shape(const json::object& object, RowKind kind, ExampleRow& row) {
    const auto* messages = object.if_contains("messages");
    const auto* prompt = object.if_contains("prompt");
    if (kind == RowKind::answers && messages != nullptr && prompt == nullptr) {
        return read_messages(*messages, row);
    }
    if (messages != nullptr) {
        return kind == RowKind::answers
                   ? fault("messages and prompt exclude each other",
                           "messages e prompt si escludono")
                   : fault("a pair has prompt, chosen and rejected, not messages",
                           "una coppia ha prompt, chosen e rejected, non messages");
    }
    if (prompt == nullptr) {
        return kind == RowKind::answers
                   ? fault("has neither messages nor prompt", "non ha né messages né prompt")
                   : fault("prompt is missing", "manca prompt");
    }
    TRY_DO(read_prompt(*prompt, row));
    const bool pair = kind == RowKind::pairs;
    TRY(Answer first, answer_of(object, pair ? "chosen" : "completion", row));
    row.answers.push_back(std::move(first));
    if (!pair) return {};
    TRY(Answer worse, answer_of(object, "rejected", row));
    row.answers.push_back(std::move(worse));
    if (row.answers[0] == row.answers[1]) {
        return fault("chosen and rejected are the same", "chosen e rejected sono uguali");
    }
    return {};
}

}  // namespace

Result<ExampleRow> parse_example(std::string_view line, RowKind kind) {
    TRY(const json::value value,
        parse_json(line, {.bytes_max = example_bytes_max, .depth_max = depth_max}));
    const auto* object = value.if_object();
    if (object == nullptr) return fault("is no JSON object", "non è un oggetto JSON");
    ExampleRow row;
    TRY_DO(read_permission(*object));
    TRY_DO(read_label(*object, row));
    TRY_DO(read_license(*object, row));
    TRY_DO(read_shape(*object, kind, row));
    return row;
}

std::string_view right_row(RowKind kind) noexcept {
    return kind == RowKind::answers ? R"({"messages": [{"role": "user", "content": "..."}, )"
                                      R"({"role": "assistant", "content": "..."}]} or )"
                                      R"({"prompt": "...", "completion": "..."})"
                                    : R"({"prompt": "...", "chosen": "...", "rejected": "..."})";
}

}  // namespace molly::train
