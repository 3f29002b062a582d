// POST /v1/chat/completions, from a domain Response to bytes, whole or streamed.
#include "dialects/internal/faces.h"
#include "dialects/internal/openai.h"
#include "dialects/internal/parts.h"

namespace molly::dialects {
namespace {

void append_message(JsonText& json, const domain::Response& response) {
    json.open().field("role", "assistant");
    const std::string& text = response.text.text();
    if (text.empty() && !response.tool_calls.empty()) {
        json.null_field("content");
    } else {
        json.field("content", text);
    }
    json.null_field("refusal").key("annotations").open_array().close_array();
    if (!response.reasoning.empty()) json.field("reasoning_content", response.reasoning.text());
    if (!response.tool_calls.empty()) {
        json.key("tool_calls").open_array();
        for (const domain::ToolCall& call : response.tool_calls)
            append_tool_call(json, call);
        json.close_array();
    }
    json.close();
}

class OpenAiChatStream final : public StreamEncoder {
public:
    explicit OpenAiChatStream(Envelope envelope) : envelope_(std::move(envelope)) {
        head_ = "data: ";
        JsonText(head_)
            .open()
            .field("id", "chatcmpl-" + envelope_.id)
            .field("object", "chat.completion.chunk")
            .field("created", unix_seconds(envelope_.created))
            .field("model", envelope_.model)
            .key("choices")
            .open_array();
        tail_ = envelope_.usage_in_stream ? "],\"usage\":null}\n\n" : "]}\n\n";
    }

    std::string begin() override {
        return head_ +
               R"({"index":0,"delta":{"role":"assistant","content":"","refusal":null},)"
               R"("logprobs":null,"finish_reason":null})" +
               tail_;
    }

    std::string delta(const domain::Delta& delta) override {
        std::string out;
        if (delta.text.empty() && delta.reasoning.empty() && delta.tool_calls.empty() &&
            delta.logprobs.empty())
            return out;
        out.reserve(head_.size() + delta.text.size() + 128);
        out += head_;
        JsonText json(out);
        json.open().field("index", 0).key("delta").open();
        if (!delta.reasoning.empty()) json.field("reasoning_content", delta.reasoning);
        if (!delta.text.empty()) json.field("content", delta.text);
        if (!delta.tool_calls.empty()) append_calls(json, delta.tool_calls);
        json.close().key("logprobs");
        append_logprobs(json, delta.logprobs);
        json.null_field("finish_reason").close();
        out += tail_;
        return out;
    }

    std::string end(const domain::Response& response) override {
        std::string out = head_;
        JsonText json(out);
        json.open().field("index", 0).key("delta").open().close();
        json.null_field("logprobs").field("finish_reason", to_string(response.finish)).close();
        out += ']';
        append_extensions(json, envelope_, response);
        if (envelope_.usage_in_stream) out += R"(,"usage":null)";
        out += "}\n\n";
        if (envelope_.usage_in_stream) append_usage_chunk(out, response.usage);
        out += sse_done;
        return out;
    }

    std::string failed(const Error& error) override {
        std::string out = "data: ";
        out += openai_error_body(error);
        out += "\n\n";
        out += sse_done;
        return out;
    }

    std::string keep_alive() override { return std::string(sse_keep_alive); }

private:
    static void append_calls(JsonText& json, const std::vector<domain::ToolCallDelta>& calls) {
        json.key("tool_calls").open_array();
        for (const domain::ToolCallDelta& call : calls) {
            json.open().field("index", call.index);
            if (!call.id.empty()) json.field("id", call.id).field("type", "function");
            json.key("function").open();
            if (!call.name.empty()) json.field("name", call.name);
            json.field("arguments", call.arguments).close().close();
        }
        json.close_array();
    }

    void append_usage_chunk(std::string& out, const domain::Usage& usage) const {
        out += head_;
        out += R"(],"usage":)";
        JsonText json(out);
        append_usage(json, usage);
        out += "}\n\n";
    }

    Envelope envelope_;
    std::string head_;  // of every chunk, up to and with `"choices":[`
    std::string tail_;  // of every chunk but the last ones
};

}  // namespace

std::string encode_openai_chat(const Envelope& envelope, const domain::Response& response) {
    std::string out;
    out.reserve(response.text.text().size() + 640);
    JsonText json(out);
    json.open()
        .field("id", "chatcmpl-" + envelope.id)
        .field("object", "chat.completion")
        .field("created", unix_seconds(envelope.created))
        .field("model", envelope.model)
        .key("choices")
        .open_array()
        .open()
        .field("index", 0)
        .key("message");
    append_message(json, response);
    json.key("logprobs");
    append_logprobs(json, response.logprobs);
    json.field("finish_reason", to_string(response.finish)).close().close_array().key("usage");
    append_usage(json, response.usage);
    append_extensions(json, envelope, response);
    json.close();
    return out;
}

std::unique_ptr<StreamEncoder> make_openai_chat_stream(Envelope envelope) {
    return std::make_unique<OpenAiChatStream>(std::move(envelope));
}

}  // namespace molly::dialects
