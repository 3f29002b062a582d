// POST /v1/messages, from a domain Response to bytes, whole or streamed.
#include <algorithm>
#include <optional>

#include "dialects/internal/faces.h"
#include "dialects/internal/object_text.h"
#include "dialects/internal/parts.h"

namespace molly::dialects {
namespace {

using domain::FinishReason;

std::string_view stop_reason(const domain::Response& response) {
    switch (response.finish) {
        case FinishReason::stop:
            return response.stop_sequence.empty() ? "end_turn" : "stop_sequence";
        case FinishReason::length:
            return "max_tokens";
        case FinishReason::tool_calls:
            return "tool_use";
        case FinishReason::content_filter:
            return "refusal";
    }
    return "end_turn";
}

void append_token_counts(JsonText& json, const domain::Usage& usage) {
    json.field("input_tokens",
               usage.prompt_tokens - std::min(usage.cached_tokens, usage.prompt_tokens))
        .field("cache_creation_input_tokens", 0)
        .field("cache_read_input_tokens", usage.cached_tokens)
        .field("output_tokens", usage.answer_tokens)
        .key("output_tokens_details")
        .open()
        .field("thinking_tokens", usage.reasoning_tokens)
        .close()
        .null_field("server_tool_use");
}

void append_usage(JsonText& json, const domain::Usage& usage) {
    json.key("usage").open();
    append_token_counts(json, usage);
    json.null_field("cache_creation")
        .null_field("inference_geo")
        .field("service_tier", "standard")
        .null_field("speed")
        .close();
}

/// Everything of a message up to its content.
void open_message(JsonText& json, const Envelope& envelope) {
    json.open()
        .field("id", "msg_" + envelope.id)
        .field("type", "message")
        .field("role", "assistant")
        .field("model", envelope.model)
        .null_field("container")
        .null_field("diagnostics")
        .null_field("stop_details");
}

void append_stop(JsonText& json, const domain::Response& response) {
    json.field("stop_reason", stop_reason(response));
    if (response.stop_sequence.empty()) {
        json.null_field("stop_sequence");
    } else {
        json.field("stop_sequence", response.stop_sequence);
    }
}

void append_content(JsonText& json, const domain::Response& response) {
    json.key("content").open_array();
    if (!response.reasoning.empty()) {
        json.open().field("type", "thinking").field("thinking", response.reasoning.text());
        json.field("signature", "").close();
    }
    if (!response.text.empty()) {
        json.open().field("type", "text").field("text", response.text.text());
        json.null_field("citations").close();
    }
    for (const domain::ToolCall& call : response.tool_calls) {
        json.open().field("type", "tool_use").field("id", call.id).field("name", call.name);
        json.raw_field("input", object_text(call.arguments.text())).close();
    }
    json.close_array();
}

class AnthropicStream final : public StreamEncoder {
public:
    explicit AnthropicStream(Envelope envelope) : envelope_(std::move(envelope)) {}

    std::string begin() override {
        std::string out = "event: message_start\ndata: ";
        JsonText json(out);
        json.open().field("type", "message_start").key("message");
        open_message(json, envelope_);
        json.key("content").open_array().close_array().null_field("stop_reason");
        json.null_field("stop_sequence");
        append_usage(json, {});
        json.close().close();
        out += "\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\n";
        return out;
    }

    std::string delta(const domain::Delta& delta) override {
        std::string out;
        if (!delta.reasoning.empty()) {
            enter(out, {.kind = Block::Kind::thinking});
            append_delta(out, index_, "thinking_delta", "thinking", delta.reasoning);
        }
        if (!delta.text.empty()) {
            enter(out, {.kind = Block::Kind::text});
            append_delta(out, index_, "text_delta", "text", delta.text);
        }
        for (const domain::ToolCallDelta& call : delta.tool_calls)
            append_call(out, call);
        return out;
    }

    std::string end(const domain::Response& response) override {
        std::string out;
        leave(out);
        out += "event: message_delta\ndata: ";
        JsonText json(out);
        json.open().field("type", "message_delta").key("delta").open();
        append_stop(json, response);
        json.null_field("stop_details").null_field("container").close();
        json.key("usage").open();
        append_token_counts(json, response.usage);
        json.close();
        append_extensions(json, envelope_, response);
        json.close();
        out += "\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
        return out;
    }

    std::string failed(const Error& error) override {
        return "event: error\ndata: " +
               encode_error(Face::anthropic_messages, error, envelope_.id).body + "\n\n";
    }

    std::string keep_alive() override { return "event: ping\ndata: {\"type\":\"ping\"}\n\n"; }

private:
    struct Block {
        enum class Kind : std::uint8_t { text, thinking, tool };
        Kind kind = Kind::text;
        std::uint32_t call = 0;  // tool only: which one

        bool operator==(const Block&) const = default;
    };

    void append_call(std::string& out, const domain::ToolCallDelta& call) {
        const Block block = {.kind = Block::Kind::tool, .call = call.index};
        const bool begun = call.index < blocks_of_calls_.size();
        if (!begun) {
            enter(out, block, &call);
            // Calls are numbered without gaps; a gap would be a call that nobody began.
            blocks_of_calls_.resize(std::size_t{call.index} + 1, index_);
        }
        if (call.arguments.empty()) return;
        append_delta(out, blocks_of_calls_[call.index], "input_json_delta", "partial_json",
                     call.arguments);
    }

    void enter(std::string& out, const Block& block, const domain::ToolCallDelta* call = nullptr) {
        if (open_ == block) return;
        leave(out);
        open_ = block;
        out += "event: content_block_start\ndata: ";
        JsonText json(out);
        json.open().field("type", "content_block_start").field("index", index_);
        json.key("content_block").open();
        switch (block.kind) {
            case Block::Kind::text:
                json.field("type", "text").field("text", "").null_field("citations");
                break;
            case Block::Kind::thinking:
                json.field("type", "thinking").field("thinking", "").field("signature", "");
                break;
            case Block::Kind::tool:
                json.field("type", "tool_use").field("id", call->id).field("name", call->name);
                json.raw_field("input", "{}");
                break;
        }
        json.close().close();
        out += "\n\n";
    }

    void leave(std::string& out) {
        if (!open_) return;
        open_.reset();
        out += "event: content_block_stop\ndata: ";
        JsonText(out).open().field("type", "content_block_stop").field("index", index_).close();
        out += "\n\n";
        ++index_;
    }

    static void append_delta(std::string& out, std::uint32_t index, std::string_view type,
                             std::string_view name, std::string_view text) {
        out += "event: content_block_delta\ndata: ";
        JsonText json(out);
        json.open().field("type", "content_block_delta").field("index", index).key("delta").open();
        json.field("type", type).field(name, text).close().close();
        out += "\n\n";
    }

    Envelope envelope_;
    std::optional<Block> open_;
    std::uint32_t index_ = 0;  // of the open block, or of the next one
    std::vector<std::uint32_t> blocks_of_calls_;
};

}  // namespace

std::string encode_anthropic(const Envelope& envelope, const domain::Response& response) {
    std::string out;
    JsonText json(out);
    open_message(json, envelope);
    append_content(json, response);
    append_stop(json, response);
    append_usage(json, response.usage);
    append_extensions(json, envelope, response);
    json.close();
    return out;
}

std::unique_ptr<StreamEncoder> make_anthropic_stream(Envelope envelope) {
    return std::make_unique<AnthropicStream>(std::move(envelope));
}

}  // namespace molly::dialects
