#include "app/question.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "app/explanation_words.h"

namespace molly::app {
namespace {

std::string body_for(const Question& question) {
    json::array messages;
    for (const Turn& turn : question.turns)
        messages.push_back(json::object{{"role", turn.role}, {"content", turn.text}});
    json::object molly;
    if (!question.sensitivity.empty()) molly["class"] = question.sensitivity;
    if (!question.conversation.empty()) molly["conversation"] = question.conversation;
    if (!question.mode.empty()) molly["mode"] = question.mode;
    if (!question.keep_prefix.empty()) molly["keep_prefix"] = question.keep_prefix;
    json::object out;
    out["model"] = question.model;
    out["messages"] = std::move(messages);
    out["stream"] = true;
    out["stream_options"] = json::object{{"include_usage", true}};
    if (question.tokens_max > 0) out["max_tokens"] = question.tokens_max;
    if (!molly.empty()) out["molly"] = std::move(molly);
    return to_text(json::value(std::move(out)));
}

const json::value* at(const json::value* value, std::string_view name) {
    return value != nullptr && value->is_object() ? value->get_object().if_contains(name) : nullptr;
}

std::string text_at(const json::value* value, std::string_view name) {
    const json::value* found = at(value, name);
    return found != nullptr && found->is_string() ? std::string(found->get_string())
                                                  : std::string();
}

std::uint64_t count_at(const json::value* value, std::string_view name) {
    const json::value* found = at(value, name);
    return found != nullptr && found->is_int64() && found->get_int64() >= 0
               ? static_cast<std::uint64_t>(found->get_int64())
               : 0;
}

/// Reads the lines of an OpenAI stream.
class StreamReader {
public:
    StreamReader(Answer& answer, const std::function<void(std::string_view)>& show)
        : answer_(answer), show_(show) {}

    void piece(std::string_view bytes) {
        held_ += bytes;
        for (auto end = held_.find('\n'); end != std::string::npos; end = held_.find('\n')) {
            std::string_view text(held_.data(), end);
            if (text.starts_with("data: {")) event(text.substr(6));
            held_.erase(0, end + 1);
        }
    }
    const std::string& failure() const noexcept { return failure_; }

private:
    void event(std::string_view text) {
        const auto parsed = parse_json(text);
        if (!parsed) return;
        if (const json::value* error = at(&*parsed, "error")) failure_ = text_at(error, "message");
        if (const json::value* usage = at(&*parsed, "usage");
            usage != nullptr && usage->is_object()) {
            answer_.prompt_tokens = count_at(usage, "prompt_tokens");
            answer_.answer_tokens = count_at(usage, "completion_tokens");
        }
        const json::value* choices = at(&*parsed, "choices");
        if (choices == nullptr || !choices->is_array() || choices->get_array().empty()) return;
        const std::string piece = text_at(at(&choices->get_array()[0], "delta"), "content");
        answer_.text += piece;
        if (show_ && !piece.empty()) show_(piece);
    }

    Answer& answer_;
    const std::function<void(std::string_view)>& show_;
    std::string held_;
    std::string failure_;
};

std::string number_at(const json::value* value, std::string_view name) {
    const json::value* found = at(value, name);
    if (found == nullptr || !found->is_number()) return "-";
    return fmt::format("{:.3g}", found->to_number<double>());
}

}  // namespace

Result<Answer> put_question(Api& api, const Question& question,
                            const std::function<void(std::string_view)>& show) {
    Answer answer;
    StreamReader reader(answer, show);
    const auto begin = std::chrono::steady_clock::now();
    TRY(const ApiReply reply, api.call("POST", "/v1/chat/completions", body_for(question),
                                       [&reader](std::string_view piece) { reader.piece(piece); }));
    if (reply.status >= 400) return fail(error_of(reply));
    if (!reader.failure().empty()) return fail(ErrorCode::upstream_failed, reader.failure());
    answer.duration = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::steady_clock::now() - begin);
    answer.target = net::header(reply.headers, "x-molly-target");
    answer.tier = net::header(reply.headers, "x-molly-tier");
    answer.receipt = net::header(reply.headers, "x-molly-receipt");
    answer.alias = net::header(reply.headers, "x-molly-alias");
    return answer;
}

std::string summary_of(const Terminal& terminal, const Answer& answer) {
    return fmt::format("{} ({}), {} + {} {}, {:.1f} s, {} {}", answer.target, answer.tier,
                       answer.prompt_tokens, answer.answer_tokens, terminal.say("tokens", "token"),
                       static_cast<double>(answer.duration.count()) / 1000.0,
                       terminal.say("receipt", "ricevuta"), answer.receipt);
}

namespace {

/// What the request was taken for: task, the likeliest fields, difficulty.
std::string profile_line(const Terminal& terminal, const json::value* profile) {
    const json::value* fields = at(profile, "fields");
    if (fields == nullptr || !fields->is_object()) return {};
    std::vector<std::pair<double, std::string>> order;
    for (const auto& [name, share] : fields->get_object()) {
        if (share.is_number()) order.emplace_back(-share.to_number<double>(), std::string(name));
    }
    std::sort(order.begin(), order.end());
    std::string out = fmt::format("{} {}", terminal.say("task", "compito"),
                                  in_words(terminal, text_at(profile, "task")));
    constexpr std::size_t shown_max = 3;
    for (std::size_t i = 0; i < std::min(order.size(), shown_max); ++i)
        out += fmt::format(", {} {:.2f}", in_words(terminal, order[i].second), -order[i].first);
    const json::value* difficulty = at(profile, "difficulty");
    const double hard =
        difficulty != nullptr && difficulty->is_number() ? difficulty->to_number<double>() : 0;
    return out + fmt::format(", {} {:.2f}\n", terminal.say("difficulty", "difficoltà"), hard);
}

/// Why an attempt was made that was no step of the plan.
std::string cause_of(const Terminal& terminal, std::string_view cause) {
    if (cause == "mixture") return std::string(terminal.say(" (mixture)", " (miscela)"));
    if (cause == "sample") return std::string(terminal.say(" (once more)", " (ancora una volta)"));
    if (cause == "verification") return std::string(terminal.say(" (verifies)", " (verifica)"));
    if (cause == "hedge") return std::string(terminal.say(" (hedge)", " (di riserva)"));
    return {};
}

std::string attempt_lines(const Terminal& terminal, const json::value* attempts) {
    std::string out;
    if (attempts == nullptr || !attempts->is_array()) return out;
    for (const json::value& one : attempts->get_array()) {
        const std::string failed = text_at(&one, "failed");
        const std::string adapter = text_at(&one, "adapter");
        out += fmt::format("  {} {}{}{}{}: {}", terminal.say("attempt", "tentativo"),
                           text_at(&one, "target"), adapter.empty() ? "" : "/", adapter,
                           cause_of(terminal, text_at(&one, "cause")),
                           failed.empty() ? std::string(terminal.say("answered", "ha risposto"))
                                          : in_words(terminal, failed));
        if (number_at(&one, "confidence") != "-") {
            out += fmt::format(", {} {} ({})", terminal.say("confidence", "confidenza"),
                               number_at(&one, "confidence"),
                               in_words(terminal, text_at(&one, "confidence_from")));
        }
        out += fmt::format(", {} ms\n", number_at(&one, "duration_ms"));
    }
    return out;
}

}  // namespace

Result<std::string> explanation_of(Api& api, const Terminal& terminal, const std::string& receipt) {
    TRY(const std::string body, body_of(api.call("GET", "/molly/v1/traces/" + receipt)));
    TRY(const json::value trace, parse_json(body));
    const json::value* decision = at(&trace, "decision");
    std::string out = fmt::format("{} {}, {} {}\n", terminal.say("class", "classe"),
                                  text_at(at(&trace, "label"), "class"),
                                  terminal.say("rule", "regola"), text_at(decision, "rule"));
    out += profile_line(terminal, at(&trace, "profile"));
    const json::value* candidates = at(decision, "candidates");
    if (candidates == nullptr || !candidates->is_array()) return out;
    for (const json::value& one : candidates->get_array()) {
        const std::string excluded = text_at(&one, "excluded_by");
        const std::string adapter = text_at(&one, "adapter");
        out += fmt::format("  {}{}{} ({}): ", text_at(&one, "target"), adapter.empty() ? "" : "/",
                           adapter, text_at(&one, "tier"));
        if (excluded.empty()) {
            const std::string weight = number_at(&one, "weight");
            if (weight != "-")
                out += fmt::format("{} {}, ", terminal.say("mixture", "miscela"), weight);
            out += fmt::format("{} {}, {} {}, {} {} ms, {} {}\n",
                               terminal.say("score", "punteggio"), number_at(&one, "score"),
                               terminal.say("quality", "qualità"), number_at(&one, "quality"),
                               terminal.say("latency", "latenza"), number_at(&one, "latency_ms"),
                               terminal.say("cost", "costo"), text_at(&one, "cost"));
        } else {
            out += fmt::format("{} {}\n", terminal.say("excluded:", "esclusa:"), excluded);
        }
    }
    out += attempt_lines(terminal, at(&trace, "attempts"));
    out.pop_back();
    return out;
}

}  // namespace molly::app
