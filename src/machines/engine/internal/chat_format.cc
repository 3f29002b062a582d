#include "engine/internal/chat_format.h"

#include <exception>
#include <random>
#include <utility>

#include <chat.h>
#include <fmt/format.h>
#include <log.h>

#include "engine/internal/tool_schema.h"

namespace molly::engine {
namespace {

constexpr std::string_view call_id_letters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

std::string make_call_id() {
    static thread_local std::mt19937_64 random{std::random_device{}()};
    std::string id = "call_";
    for (int i = 0; i < 24; ++i)
        id += call_id_letters[random() % call_id_letters.size()];
    return id;
}

/// Reads with the parser that llama-common derived from the template.
class TemplateReader final : public AnswerReader {
public:
    TemplateReader(const common_chat_params& params, bool tools, bool continues) : params_(params) {
        params_.parser.load(params.parser);
        params_.reasoning_format = COMMON_REASONING_FORMAT_DEEPSEEK;
        params_.parse_tool_calls = tools;
        params_.is_continuation = continues;
        if (!continues) return;
        // What the answer continues was sent by the caller: it is known already.
        const auto known = parse({}, true);
        sent_text_ = known.content;
        sent_reasoning_ = known.reasoning_content;
    }

    domain::Delta read(const std::string& text, bool last) override {
        // Parsing starts from the beginning each time: while nothing else happens, every 64th part
        // of the text is often enough.
        if (!last && text.size() < parsed_bytes_ + parsed_bytes_ / 64) return {};
        parsed_bytes_ = text.size();
        return changes(parse(text, !last), last);
    }

private:
    struct SentCall {
        std::string id;
        bool named = false;
        std::string arguments;
    };

    common_chat_msg parse(const std::string& text, bool partial) const {
        try {
            if (!too_deep(text)) return common_chat_parse(text, partial, params_);
        } catch (const std::exception&) {
            // The model broke its own format: what it said is content.
        }
        common_chat_msg message;
        if (!partial) message.content = text;
        return message;
    }

    /// The parser recurses into nested JSON; a model may nest without end.
    static bool too_deep(std::string_view text) {
        constexpr int depth_max = 256;
        int depth = 0;
        for (const char c : text) {
            if (c == '{' || c == '[') ++depth;
            if (c == '}' || c == ']') depth = std::max(0, depth - 1);
            if (depth > depth_max) return true;
        }
        return false;
    }

    domain::Delta changes(const common_chat_msg& message, bool last) {
        domain::Delta delta;
        delta.reasoning = advance(sent_reasoning_, message.reasoning_content);
        delta.text = advance(sent_text_, message.content);
        for (std::size_t i = 0; i < message.tool_calls.size(); ++i) {
            const bool complete = last || i + 1 < message.tool_calls.size();
            add_call(delta, i, message.tool_calls[i], complete);
        }
        return delta;
    }

    static std::string advance(std::string& sent, const std::string& now) {
        if (now.size() <= sent.size() || !now.starts_with(sent)) return {};
        std::string more = now.substr(sent.size());
        sent = now;
        return more;
    }

    void add_call(domain::Delta& delta, std::size_t index, const common_chat_tool_call& call,
                  bool complete) {
        if (calls_.size() <= index) calls_.resize(index + 1);
        SentCall& sent = calls_[index];
        std::string arguments = call.arguments;
        if (!complete) {
            // The parser closes what is still open: those ends are not certain yet.
            const std::size_t certain = arguments.find_last_not_of("\"}] \n");
            arguments.resize(certain == std::string::npos ? 0 : certain + 1);
        } else if (arguments.empty()) {
            arguments = "{}";
        }
        if (!sent.named && arguments.empty()) return;  // the name may still grow
        domain::ToolCallDelta piece;
        piece.index = static_cast<std::uint32_t>(index);
        if (!sent.named) {
            sent.named = true;
            sent.id = call.id.empty() ? make_call_id() : call.id;
            piece.id = sent.id;
            piece.name = call.name;
        }
        piece.arguments = advance(sent.arguments, arguments);
        if (!piece.name.empty() || !piece.arguments.empty()) {
            delta.tool_calls.push_back(std::move(piece));
        }
    }

    common_chat_parser_params params_;
    std::string sent_text_;
    std::string sent_reasoning_;
    std::vector<SentCall> calls_;
    std::size_t parsed_bytes_ = 0;
};

Result<common_chat_msg> message_of(const domain::Message& from) {
    common_chat_msg message;
    message.role = to_string(from.role);
    for (const auto& part : from.parts) {
        if (part.kind != domain::Part::Kind::text) {
            return fail(Error(ErrorCode::unsupported,
                              "the local model reads text only; remove images, audio and files, or "
                              "name a target that sees them")
                            .italian("il modello locale legge solo testo; togliere immagini, audio "
                                     "e file, oppure indicare un altro target"));
        }
    }
    message.content = text_of(from);
    message.reasoning_content = from.reasoning.text();
    message.tool_call_id = from.tool_call_id;
    if (from.role == domain::Role::tool) message.tool_name = from.name;
    for (const auto& call : from.tool_calls) {
        message.tool_calls.push_back(
            {call.name, call.arguments.empty() ? "{}" : call.arguments.text(), call.id});
    }
    return message;
}

Result<void> add_tools(const domain::Request& request, common_chat_templates_inputs& inputs) {
    using Kind = domain::ToolChoice::Kind;
    const auto& choice = request.tool_choice;
    const bool forced = choice.kind == Kind::required || choice.kind == Kind::named;
    if (choice.kind == Kind::none) return {};
    for (const auto& tool : request.tools) {
        if (choice.kind == Kind::named && tool.name != choice.name) continue;
        auto schema = tame_tool_schema(tool.parameters.text());
        if (!schema) return fail(Error(schema.error()).param("tools"));
        inputs.tools.push_back({tool.name, tool.description.text(), *schema});
    }
    if (forced && inputs.tools.empty()) {
        return fail(
            Error(ErrorCode::invalid_request, "tool_choice names a tool that is not in tools")
                .param("tool_choice"));
    }
    inputs.tool_choice = forced ? COMMON_CHAT_TOOL_CHOICE_REQUIRED : COMMON_CHAT_TOOL_CHOICE_AUTO;
    inputs.parallel_tool_calls = choice.parallel && choice.kind != Kind::named;
    return {};
}

/// Grammar and reader of the tool calls, from what the template's analysis gave.
void take_tool_grammar(const common_chat_params& params, Prompt& prompt) {
    if (!params.grammar_lazy) {
        prompt.tool_grammar = params.grammar;
        return;
    }
    for (const auto& trigger : params.grammar_triggers) {
        // A few templates start their grammar at a regular expression; those run without one.
        if (trigger.type != COMMON_GRAMMAR_TRIGGER_TYPE_WORD || trigger.value.empty()) return;
    }
    for (const auto& trigger : params.grammar_triggers)
        prompt.grammar_words.push_back(trigger.value);
    if (!prompt.grammar_words.empty()) prompt.tool_grammar = params.grammar;
}

class TemplateFormat final : public ChatFormat {
public:
    explicit TemplateFormat(common_chat_templates_ptr templates)
        : templates_(std::move(templates)) {
        for (const auto& [name, able] : common_chat_templates_get_caps(templates_.get())) {
            if (name == "supports_tools") tools_ = able;
        }
    }

    bool tools() const noexcept override { return tools_; }

    Result<Prompt> render(const domain::Request& request) const override {
        common_chat_templates_inputs inputs;
        for (const auto& message : request.messages) {
            TRY(auto converted, message_of(message));
            inputs.messages.push_back(std::move(converted));
        }
        TRY_DO(add_tools(request, inputs));
        const bool shaped = request.format.kind != domain::OutputFormat::Kind::text;
        inputs.reasoning_format = COMMON_REASONING_FORMAT_DEEPSEEK;
        inputs.enable_thinking = !shaped && request.sampling.reasoning_effort != "none";
        const bool continues = !request.messages.empty() &&
                               request.messages.back().role == domain::Role::assistant &&
                               request.messages.back().tool_calls.empty();
        if (continues) {
            inputs.continue_final_message = COMMON_CHAT_CONTINUATION_AUTO;
            inputs.add_generation_prompt = false;
        }
        try {
            return make_prompt(inputs, shaped, continues);
        } catch (const std::exception&) {
            // Its text may quote the messages, so it is not passed on.
            return fail(Error(ErrorCode::invalid_request,
                              "the model's chat template refuses these messages or tools; check "
                              "the order of roles")
                            .italian("il template di chat del modello rifiuta questi messaggi o "
                                     "strumenti; controllare l'ordine dei ruoli")
                            .param("messages"));
        }
    }

private:
    Result<Prompt> make_prompt(const common_chat_templates_inputs& inputs, bool shaped,
                               bool continues) const {
        common_chat_params params = common_chat_templates_apply(templates_.get(), inputs);
        if (shaped && !inputs.tools.empty() && params.grammar_lazy) {
            // The answer is a call or has the shape: the grammar holds from the start.
            common_chat_templates_inputs forced = inputs;
            forced.tool_choice = COMMON_CHAT_TOOL_CHOICE_REQUIRED;
            const auto strict = common_chat_templates_apply(templates_.get(), forced);
            params.grammar = strict.grammar;
            params.grammar_lazy = false;
        }
        Prompt prompt;
        prompt.text = params.prompt;
        prompt.opening = params.generation_prompt;
        prompt.stops = params.additional_stops;
        prompt.visible = params.preserved_tokens;
        const bool tools = !inputs.tools.empty();
        if (tools) take_tool_grammar(params, prompt);
        const bool forced = inputs.tool_choice == COMMON_CHAT_TOOL_CHOICE_REQUIRED;
        if (tools && forced && prompt.tool_grammar.empty()) {
            return fail(Error(ErrorCode::unsupported,
                              "this model's template has no form for tool calls; use "
                              "tool_choice auto or another model")
                            .param("tool_choice"));
        }
        const bool reads = tools || (params.supports_thinking && !shaped);
        if (reads && !params.parser.empty()) {
            prompt.reader = std::make_unique<TemplateReader>(params, tools, continues);
        }
        return prompt;
    }

    common_chat_templates_ptr templates_;
    bool tools_ = false;
};

}  // namespace

Result<std::unique_ptr<ChatFormat>> ChatFormat::make(const llama_model* model,
                                                     const std::string& override) {
    // llama-common would write answers that do not parse to standard error.
    common_log_set_verbosity_thold(-1);
    try {
        auto templates = common_chat_templates_init(model, override);
        return std::make_unique<TemplateFormat>(std::move(templates));
    } catch (const std::exception& error) {
        return fail(ErrorCode::corrupt,
                    fmt::format("the model's chat template does not parse: {}", error.what()));
    }
}

}  // namespace molly::engine
