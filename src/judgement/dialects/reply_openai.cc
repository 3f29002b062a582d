// An OpenAI upstream's reply, whole or streamed, as Deltas.
#include <algorithm>

#include "dialects/internal/sse.h"
#include "dialects/internal/upstream.h"

namespace molly::dialects {
namespace {

using domain::Delta;
using domain::FinishReason;

std::optional<FinishReason> finish_of(std::string_view reason) {
    if (reason.empty()) return std::nullopt;
    if (reason == "length") return FinishReason::length;
    if (reason == "tool_calls" || reason == "function_call") return FinishReason::tool_calls;
    if (reason == "content_filter") return FinishReason::content_filter;
    return FinishReason::stop;
}

std::optional<domain::Usage> usage_of(const json::object& reply) {
    const json::object* usage = object_in(reply, "usage");
    if (usage == nullptr) return std::nullopt;
    domain::Usage tokens;
    tokens.source = domain::Usage::Source::upstream;
    tokens.prompt_tokens = count_in(*usage, "prompt_tokens");
    tokens.answer_tokens = count_in(*usage, "completion_tokens");
    if (const json::object* prompt = object_in(*usage, "prompt_tokens_details"))
        tokens.cached_tokens = count_in(*prompt, "cached_tokens");
    if (const json::object* answer = object_in(*usage, "completion_tokens_details"))
        tokens.reasoning_tokens = count_in(*answer, "reasoning_tokens");
    return tokens;
}

void read_logprobs(const json::object& choice, Delta& delta) {
    const json::object* logprobs = object_in(choice, "logprobs");
    const json::array* content = logprobs == nullptr ? nullptr : array_in(*logprobs, "content");
    if (content == nullptr) return;
    for (const json::value& entry : *content) {
        const json::object* token = entry.if_object();
        if (token == nullptr) continue;
        delta.logprobs.push_back(read_token(*token));
    }
}

/// The older shape: parallel arrays.
void read_logprobs_arrays(const json::object& choice, Delta& delta) {
    const json::object* logprobs = object_in(choice, "logprobs");
    if (logprobs == nullptr) return;
    const json::array* tokens = array_in(*logprobs, "tokens");
    const json::array* values = array_in(*logprobs, "token_logprobs");
    const json::array* tops = array_in(*logprobs, "top_logprobs");
    if (tokens == nullptr || values == nullptr) return;
    for (std::size_t i = 0; i < std::min(tokens->size(), values->size()); ++i) {
        const json::string* token = (*tokens)[i].if_string();
        domain::TokenLogprob& read = delta.logprobs.emplace_back();
        if (token != nullptr) read.token = *token;
        read.logprob = number_in((*values)[i]);
        const json::object* top =
            tops != nullptr && i < tops->size() ? (*tops)[i].if_object() : nullptr;
        if (top == nullptr) continue;
        for (const auto& [key, value] : *top)
            read.top.emplace_back(std::string(std::string_view(key)), number_in(value));
    }
}

/// Calls lie under `tool_calls` with an index in streams and without one in whole messages.
Result<void> read_tool_calls(const json::object& message, Delta& delta) {
    constexpr std::uint32_t calls_max = 1024;
    const json::array* calls = array_in(message, "tool_calls");
    if (calls == nullptr) return {};
    std::uint32_t position = 0;
    for (const json::value& entry : *calls) {
        const json::object* call = entry.if_object();
        if (call == nullptr) return malformed_reply();
        domain::ToolCallDelta& read = delta.tool_calls.emplace_back();
        read.index = call->contains("index") ? count_in(*call, "index") : position;
        ++position;
        if (read.index >= calls_max) return malformed_reply();
        read.id = text_in(*call, "id");
        if (const json::object* function = object_in(*call, "function")) {
            read.name = text_in(*function, "name");
            read.arguments = text_in(*function, "arguments");
        }
    }
    return {};
}

/// `message` of a whole reply and `delta` of a chunk have the same fields.
Result<void> read_message(const json::object& message, Delta& delta) {
    delta.text = text_in(message, "content");
    delta.reasoning = text_in(message, "reasoning_content");
    if (delta.reasoning.empty()) delta.reasoning = text_in(message, "reasoning");
    return read_tool_calls(message, delta);
}

class OpenAiReplyDecoder : public ReplyDecoderBase {
public:
    explicit OpenAiReplyDecoder(domain::Operation operation) : operation_(operation) {}

protected:
    /// One chunk, or the whole reply. Errors: upstream_failed.
    Result<Delta> read(const json::object& reply, std::string_view message_name) {
        if (reply.if_contains("error") != nullptr && !reply.at("error").is_null())
            return error_in_reply();
        note_model(reply);
        Delta delta;
        delta.usage = usage_of(reply);
        const json::array* choices = array_in(reply, "choices");
        // Usage counts wherever it stands, beside choices or without any (case 6).
        if (choices == nullptr || choices->empty()) return delta;
        const json::object* choice = (*choices)[0].if_object();
        if (choice == nullptr) return malformed_reply();
        delta.finish = finish_of(text_in(*choice, "finish_reason"));
        if (delta.finish) finished_ = true;
        if (operation_ == domain::Operation::complete) {
            read_logprobs_arrays(*choice, delta);
            delta.text = text_in(*choice, "text");
            return delta;
        }
        read_logprobs(*choice, delta);
        if (const json::object* message = object_in(*choice, message_name))
            TRY_DO(read_message(*message, delta));
        return delta;
    }

    domain::Operation operation_;
    bool finished_ = false;  // a finish_reason came
};

class OpenAiStreamDecoder final : public OpenAiReplyDecoder {
public:
    using OpenAiReplyDecoder::OpenAiReplyDecoder;

    Result<std::vector<Delta>> piece(std::string_view bytes) override {
        std::vector<Delta> deltas;
        TRY_DO(
            events_.piece(bytes, [&](const SseEvent& event) { return chunk(event.data, deltas); }));
        return deltas;
    }

    Result<std::vector<Delta>> end() override {
        std::vector<Delta> deltas;
        TRY_DO(events_.end([&](const SseEvent& event) { return chunk(event.data, deltas); }));
        // Some servers leave out [DONE]; a finish_reason and a proper end of the body do as well.
        if (!done_ && !finished_) return incomplete_reply();
        return deltas;
    }

private:
    Result<void> chunk(std::string_view text, std::vector<Delta>& deltas) {
        if (done_) return {};
        if (text == "[DONE]") {
            done_ = true;
            return {};
        }
        TRY(const json::value value, parse_reply(text));
        const json::object* reply = value.if_object();
        if (reply == nullptr) return malformed_reply();
        TRY(Delta delta, read(*reply, "delta"));
        deltas.push_back(std::move(delta));
        return {};
    }

    SseReader events_;
    bool done_ = false;  // [DONE] came
};

class OpenAiWholeDecoder final : public OpenAiReplyDecoder {
public:
    using OpenAiReplyDecoder::OpenAiReplyDecoder;

    Result<std::vector<Delta>> piece(std::string_view bytes) override {
        TRY_DO(body_.piece(bytes));
        return std::vector<Delta>();
    }

    Result<std::vector<Delta>> end() override {
        TRY(const json::value value, parse_reply(body_.text()));
        const json::object* reply = value.if_object();
        if (reply == nullptr) return malformed_reply();
        std::vector<Delta> deltas;
        TRY(Delta delta, read(*reply, "message"));
        if (operation_ == domain::Operation::embed) {
            TRY_DO(read_embeddings(*reply));
        } else if (!finished_) {
            return incomplete_reply();
        }
        deltas.push_back(std::move(delta));
        return deltas;
    }

private:
    Result<void> read_embeddings(const json::object& reply) {
        const json::array* rows = array_in(reply, "data");
        if (rows == nullptr) return malformed_reply();
        for (const json::value& row : *rows) {
            const json::object* object = row.if_object();
            if (object == nullptr) return malformed_reply();
            TRY_DO(add_embedding(object->if_contains("embedding")));
        }
        return {};
    }

    WholeReply body_;
};

}  // namespace

std::unique_ptr<ReplyDecoder> make_openai_reply(domain::Operation operation, bool stream) {
    if (stream && operation != domain::Operation::embed)
        return std::make_unique<OpenAiStreamDecoder>(operation);
    return std::make_unique<OpenAiWholeDecoder>(operation);
}

}  // namespace molly::dialects
