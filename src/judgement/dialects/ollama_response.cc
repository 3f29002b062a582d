// Ollama's answers, whole or as lines of JSON.
#include <chrono>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "dialects/internal/faces.h"
#include "dialects/internal/object_text.h"
#include "dialects/internal/parts.h"

namespace molly::dialects {
namespace {

std::string rfc3339(WallTime time) {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
    const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(time - seconds);
    return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}Z",
                       fmt::gmtime(std::chrono::system_clock::to_time_t(seconds)), micros.count());
}

std::int64_t nanoseconds(std::chrono::microseconds time) {
    return std::chrono::nanoseconds(time).count();
}

/// One object of an answer in the shape of its face.
class OllamaShape {
public:
    OllamaShape(Face face, const Envelope& envelope) : chat_(face == Face::ollama_chat) {
        JsonText(head_)
            .open()
            .field("model", envelope.model)
            .field("created_at", rfc3339(envelope.created));
    }

    /// Everything up to `done`; the caller goes on and closes.
    JsonText open(std::string& out, std::string_view text, std::string_view reasoning,
                  const std::vector<domain::ToolCall>& calls) const {
        out += head_;
        out += ',';
        JsonText json(out);
        if (chat_) {
            json.key("message").open().field("role", "assistant").field("content", text);
        } else {
            json.field("response", text);
        }
        if (!reasoning.empty()) json.field("thinking", reasoning);
        if (!chat_) return json;
        if (!calls.empty()) append_calls(json, calls);
        json.close();
        return json;
    }

private:
    static void append_calls(JsonText& json, const std::vector<domain::ToolCall>& calls) {
        json.key("tool_calls").open_array();
        std::uint32_t index = 0;
        for (const domain::ToolCall& call : calls) {
            json.open().field("id", call.id).key("function").open().field("index", index++);
            json.field("name", call.name);
            json.raw_field("arguments", object_text(call.arguments.text())).close().close();
        }
        json.close_array();
    }

    bool chat_;
    std::string head_;
};

void append_logprobs(JsonText& json, const std::vector<domain::TokenLogprob>& logprobs) {
    if (logprobs.empty()) return;
    json.key("logprobs").open_array();
    for (const domain::TokenLogprob& token : logprobs)
        append_token(json, token);
    json.close_array();
}

/// What the last object of an answer adds.
void append_end(JsonText& json, const Envelope& envelope, const domain::Response& response) {
    const bool cut = response.finish == domain::FinishReason::length;
    json.field("done", true).field("done_reason", cut ? "length" : "stop");
    json.field("total_duration", nanoseconds(response.duration))
        .field("load_duration", 0)
        .field("prompt_eval_count", response.usage.prompt_tokens)
        .field("prompt_eval_duration", nanoseconds(response.first_token))
        .field("eval_count", response.usage.answer_tokens)
        .field("eval_duration", nanoseconds(response.duration - response.first_token));
    append_extensions(json, envelope, response);
}

class OllamaStream final : public StreamEncoder {
public:
    OllamaStream(Face face, Envelope envelope)
        : shape_(face, envelope), envelope_(std::move(envelope)) {}

    std::string begin() override { return {}; }

    std::string delta(const domain::Delta& delta) override {
        std::string out;
        // Calls go out whole at the end: the dialect has no pieces of them.
        if (delta.text.empty() && delta.reasoning.empty() && delta.logprobs.empty()) return out;
        JsonText json = shape_.open(out, delta.text, delta.reasoning, {});
        append_logprobs(json, delta.logprobs);
        json.field("done", false).close();
        out += '\n';
        return out;
    }

    std::string end(const domain::Response& response) override {
        std::string out;
        if (!response.tool_calls.empty()) {
            shape_.open(out, {}, {}, response.tool_calls).field("done", false).close();
            out += '\n';
        }
        JsonText json = shape_.open(out, {}, {}, {});
        append_end(json, envelope_, response);
        json.close();
        out += '\n';
        return out;
    }

    std::string failed(const Error& error) override {
        return encode_error(Face::ollama_chat, error).body + "\n";
    }

    std::string keep_alive() override { return {}; }

private:
    OllamaShape shape_;
    Envelope envelope_;
};

void append_vector(JsonText& json, const std::vector<float>& vector) {
    json.open_array();
    for (const float number : vector)
        json.number(number);
    json.close_array();
}

}  // namespace

std::string encode_ollama(Face face, const Envelope& envelope, const domain::Response& response) {
    std::string out;
    const OllamaShape shape(face, envelope);
    JsonText json =
        shape.open(out, response.text.text(), response.reasoning.text(), response.tool_calls);
    append_logprobs(json, response.logprobs);
    append_end(json, envelope, response);
    json.close();
    return out;
}

std::string encode_ollama_embed(const Envelope& envelope, const domain::Response& response) {
    std::string out;
    JsonText json(out);
    json.open();
    if (envelope.legacy_embeddings) {
        json.key("embedding");
        append_vector(
            json, response.embeddings.empty() ? std::vector<float>() : response.embeddings.front());
    } else {
        json.field("model", envelope.model).key("embeddings").open_array();
        for (const std::vector<float>& vector : response.embeddings)
            append_vector(json, vector);
        json.close_array()
            .field("total_duration", nanoseconds(response.duration))
            .field("load_duration", 0)
            .field("prompt_eval_count", response.usage.prompt_tokens);
    }
    append_extensions(json, envelope, response);
    json.close();
    return out;
}

std::unique_ptr<StreamEncoder> make_ollama_stream(Face face, Envelope envelope) {
    return std::make_unique<OllamaStream>(face, std::move(envelope));
}

}  // namespace molly::dialects
