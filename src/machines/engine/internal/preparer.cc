#include "engine/internal/preparer.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "engine/internal/json_grammar.h"
#include "engine/internal/kept_prefix.h"
#include "engine/internal/prefix_keeper.h"
#include "engine/internal/schema_grammar.h"

namespace molly::engine {
namespace {

constexpr std::size_t stops_max = 64;
constexpr std::size_t stop_bytes_max = 4'096;

Result<void> check_stops(const std::vector<std::string>& stops) {
    const bool fit =
        stops.size() <= stops_max && std::ranges::all_of(stops, [](const std::string& stop) {
            return stop.size() <= stop_bytes_max;
        });
    if (fit) return {};
    return fail(Error(ErrorCode::invalid_request,
                      fmt::format("at most {} stop strings of {} bytes", stops_max, stop_bytes_max))
                    .param("stop"));
}

}  // namespace

Result<std::unique_ptr<Job>> Preparer::prepare(const domain::Request& request) const {
    TRY_DO(check_stops(request.sampling.stop));
    TRY(Prompt prompt, render(request));
    TRY(auto tokens, model_.tokenize(prompt.text, true));
    TRY_DO(check_length(tokens.size()));
    TRY(auto constraint, constrain(request, prompt));
    TRY(auto sampler, Sampler::make(model_, request.sampling, std::move(constraint)));

    auto job = std::make_unique<Job>();
    job->member = request.caller.member;
    job->cancellation = request.cancellation;
    job->deadline = request.deadline;
    const auto room = limits_.context_tokens_max - static_cast<std::uint32_t>(tokens.size());
    job->answer_tokens_max =
        std::min(room, request.sampling.answer_tokens_max.value_or(limits_.answer_tokens_default));
    job->prompt = std::move(tokens);
    wish_to_keep(request, *job);
    job->sampler = std::move(sampler);
    job->reader = std::move(prompt.reader);
    job->text = AnswerText(request.sampling.stop, std::move(prompt.stops));
    for (const auto& word : prompt.visible) {
        TRY(const auto ids, model_.tokenize(word, false));
        if (ids.size() == 1) job->visible.insert(ids.front());
    }
    return job;
}

/// How much of the prompt is to be kept on disk, or why nothing is.
void Preparer::wish_to_keep(const domain::Request& request, Job& job) const {
    if (request.extensions.keep_prefix == domain::KeepPrefix::none) return;
    job.sensitivity = request.extensions.sensitivity.value_or(domain::Sensitivity::secret);
    if (limits_.deterministic) {
        job.prefix = prefix_word::deterministic;
    } else if (!limits_.prefixes) {
        job.prefix = prefix_word::off;
    } else if (!limits_.prefixes->keeps(job.sensitivity)) {
        job.prefix = prefix_word::class_forbids;
    } else {
        job.keep_tokens = shared_beginning(request, job.prompt);
        if (job.keep_tokens == 0) job.prefix = prefix_word::too_short;
    }
}

/// Tokens, in whole steps, of the whole prompt or of what any other request with the same system
/// text and tools begins with.
std::uint32_t Preparer::shared_beginning(const domain::Request& request,
                                         std::span<const Token> prompt) const {
    if (request.extensions.keep_prefix == domain::KeepPrefix::prompt ||
        request.operation != domain::Operation::chat)
        return common_steps(prompt, prompt);
    domain::Request other = request;
    const auto turns = std::ranges::find_if(other.messages, [](const domain::Message& message) {
        return message.role != domain::Role::system;
    });
    const bool dot = turns != other.messages.end() && text_of(*turns).starts_with('.');
    other.messages.erase(turns, other.messages.end());
    other.messages.push_back(domain::text_message(domain::Role::user, dot ? "-" : "."));
    const auto rendered = render(other);
    if (!rendered) return 0;
    const auto tokens = model_.tokenize(rendered->text, true);
    return tokens ? common_steps(*tokens, prompt) : 0;
}

Result<Prompt> Preparer::render(const domain::Request& request) const {
    if (request.operation == domain::Operation::complete) return render_completion(request);
    if (request.messages.empty()) {
        return fail(Error(ErrorCode::invalid_request, "messages is empty").param("messages"));
    }
    return format_.render(request);
}

Result<Prompt> Preparer::render_completion(const domain::Request& request) const {
    Prompt prompt;
    prompt.text = request.prompt.text();
    if (!request.suffix.empty()) {
        const auto* vocabulary = model_.vocabulary();
        const Token before = llama_vocab_fim_pre(vocabulary);
        const Token after = llama_vocab_fim_suf(vocabulary);
        const Token middle = llama_vocab_fim_mid(vocabulary);
        if (before < 0 || after < 0 || middle < 0) {
            return fail(Error(ErrorCode::unsupported,
                              "this model cannot fill in before a suffix; leave suffix out")
                            .param("suffix"));
        }
        prompt.text = model_.piece(before) + prompt.text + model_.piece(after) +
                      request.suffix.text() + model_.piece(middle);
    }
    return prompt;
}

Result<void> Preparer::check_length(std::size_t tokens) const {
    if (tokens == 0) {
        return fail(Error(ErrorCode::invalid_request, "the prompt is empty").param("prompt"));
    }
    if (tokens < limits_.context_tokens_max) return {};
    return fail(Error(ErrorCode::invalid_request,
                      fmt::format("the prompt has {} tokens and this model's context holds {}; "
                                  "shorten the prompt or choose a model with a longer context",
                                  tokens, limits_.context_tokens_max))
                    .italian(fmt::format("il prompt ha {} token e il contesto di questo modello ne "
                                         "contiene {}; accorciare il prompt o scegliere un modello "
                                         "con un contesto più lungo",
                                         tokens, limits_.context_tokens_max))
                    .reason("context_length_exceeded")
                    .param("messages"));
}

Result<Grammar> Preparer::parse(const std::string& gbnf, const char* param) const {
    const auto find_token = [&](std::string_view text) -> std::optional<std::uint32_t> {
        const auto ids = model_.tokenize(text, false);
        if (!ids || ids->size() != 1) return std::nullopt;
        return static_cast<std::uint32_t>(ids->front());
    };
    auto grammar = Grammar::parse(gbnf, find_token);
    if (!grammar) return fail(Error(std::move(grammar).error()).param(param));
    return grammar;
}

Result<std::unique_ptr<Constraint>> Preparer::constrain(const domain::Request& request,
                                                        const Prompt& prompt) const {
    using Kind = domain::OutputFormat::Kind;
    const auto& format = request.format;
    std::optional<Grammar> shape;
    if (format.kind == Kind::json_object) {
        TRY(shape, parse(std::string(json_object_grammar), "response_format"));
    } else if (format.kind == Kind::json_schema) {
        auto gbnf = schema_grammar(format.schema.text(), format.strict);
        if (!gbnf) return fail(Error(std::move(gbnf).error()).param("response_format"));
        TRY(shape, parse(*gbnf, "response_format"));
    } else if (format.kind == Kind::grammar) {
        if (!prompt.tool_grammar.empty()) {
            return fail(Error(ErrorCode::invalid_request, "a grammar cannot be used with tools")
                            .param("grammar"));
        }
        TRY(shape, parse(format.schema.text(), "grammar"));
    }
    using Choice = domain::ToolChoice::Kind;
    const bool forced =
        request.tool_choice.kind == Choice::required || request.tool_choice.kind == Choice::named;
    std::string opening;
    std::optional<Grammar> whole;
    if (!prompt.tool_grammar.empty()) {
        TRY(whole, parse(prompt.tool_grammar, "tools"));
        opening = prompt.opening;
        if (shape && !forced) {
            whole = Grammar::either(Grammar::after(opening, *shape), *whole);
        }
    } else if (shape) {
        whole = std::move(shape);
    }
    if (!whole) return std::unique_ptr<Constraint>();
    auto constraint = Constraint::make(std::make_shared<const Grammar>(*std::move(whole)),
                                       vocabulary_, opening, prompt.grammar_words);
    if (constraint) return constraint;
    const bool tools = !prompt.tool_grammar.empty();
    const char* const param = format.kind == Kind::grammar ? "grammar" : "response_format";
    return fail(Error(std::move(constraint).error()).param(tools ? "tools" : param));
}

}  // namespace molly::engine
