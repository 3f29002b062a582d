// An Anthropic upstream's reply, whole or streamed, as Deltas.
#include "dialects/internal/sse.h"
#include "dialects/internal/upstream.h"

namespace molly::dialects {
namespace {

using domain::Delta;
using domain::FinishReason;

std::optional<FinishReason> finish_of(std::string_view reason) {
    if (reason.empty()) return std::nullopt;
    if (reason == "max_tokens" || reason == "model_context_window_exceeded")
        return FinishReason::length;
    if (reason == "tool_use") return FinishReason::tool_calls;
    if (reason == "refusal") return FinishReason::content_filter;
    return FinishReason::stop;
}

/// Tokens as they are known so far: the counts of the prompt come first, those of the answer last.
void read_usage(const json::object& holder, domain::Usage& usage) {
    const json::object* counts = object_in(holder, "usage");
    if (counts == nullptr) return;
    usage.source = domain::Usage::Source::upstream;
    const std::uint32_t cached = count_in(*counts, "cache_read_input_tokens");
    const std::uint32_t prompt = count_in(*counts, "input_tokens") + cached +
                                 count_in(*counts, "cache_creation_input_tokens");
    if (prompt > 0) {
        usage.prompt_tokens = prompt;
        usage.cached_tokens = cached;
    }
    usage.answer_tokens = count_in(*counts, "output_tokens");
    if (const json::object* details = object_in(*counts, "output_tokens_details"))
        usage.reasoning_tokens = count_in(*details, "thinking_tokens");
}

class AnthropicStreamDecoder final : public ReplyDecoderBase {
public:
    Result<std::vector<Delta>> piece(std::string_view bytes) override {
        std::vector<Delta> deltas;
        TRY_DO(
            events_.piece(bytes, [&](const SseEvent& event) { return read(event.data, deltas); }));
        return deltas;
    }

    Result<std::vector<Delta>> end() override {
        std::vector<Delta> deltas;
        TRY_DO(events_.end([&](const SseEvent& event) { return read(event.data, deltas); }));
        if (!done_) return incomplete_reply();
        return deltas;
    }

private:
    struct Block {
        bool tool = false;
        std::uint32_t call = 0;
        bool has_arguments = false;
    };

    Result<void> read(std::string_view text, std::vector<Delta>& deltas) {
        TRY(const json::value value, parse_reply(text));
        const json::object* event = value.if_object();
        if (event == nullptr) return malformed_reply();
        const std::string_view type = text_in(*event, "type");
        if (type == "error") return error_in_reply();
        if (type == "message_start") return start_message(*event, deltas);
        if (type == "content_block_start") return start_block(*event, deltas);
        if (type == "content_block_delta") return read_delta(*event, deltas);
        if (type == "content_block_stop") return stop_block(*event, deltas);
        if (type == "message_delta") return read_end(*event, deltas);
        if (type == "message_stop") done_ = true;
        return {};
    }

    Result<void> start_message(const json::object& event, std::vector<Delta>& deltas) {
        const json::object* message = object_in(event, "message");
        if (message == nullptr) return malformed_reply();
        note_model(*message);
        read_usage(*message, usage_);
        deltas.emplace_back().usage = usage_;
        return {};
    }

    Result<void> start_block(const json::object& event, std::vector<Delta>& deltas) {
        constexpr std::size_t blocks_max = 4096;
        const json::object* content = object_in(event, "content_block");
        // Blocks come in order; their index is their position.
        if (content == nullptr || count_in(event, "index") != blocks_.size() ||
            blocks_.size() >= blocks_max)
            return malformed_reply();
        Block& block = blocks_.emplace_back();
        const std::string_view type = text_in(*content, "type");
        Delta& delta = deltas.emplace_back();
        if (type == "tool_use") {
            block.tool = true;
            block.call = calls_++;
            domain::ToolCallDelta& call = delta.tool_calls.emplace_back();
            call.index = block.call;
            call.id = text_in(*content, "id");
            call.name = text_in(*content, "name");
        } else {
            delta.text = text_in(*content, "text");
            delta.reasoning = text_in(*content, "thinking");
        }
        return {};
    }

    Result<void> read_delta(const json::object& event, std::vector<Delta>& deltas) {
        const json::object* piece = object_in(event, "delta");
        const std::uint32_t index = count_in(event, "index");
        if (piece == nullptr || index >= blocks_.size()) return malformed_reply();
        Block& block = blocks_[index];
        const std::string_view arguments = text_in(*piece, "partial_json");
        Delta& delta = deltas.emplace_back();
        delta.text = text_in(*piece, "text");
        delta.reasoning = text_in(*piece, "thinking");
        if (block.tool && !arguments.empty()) {
            block.has_arguments = true;
            domain::ToolCallDelta& call = delta.tool_calls.emplace_back();
            call.index = block.call;
            call.arguments = arguments;
        }
        return {};
    }

    /// A call without arguments sends none; an empty object is what it means.
    Result<void> stop_block(const json::object& event, std::vector<Delta>& deltas) {
        const std::uint32_t index = count_in(event, "index");
        if (index >= blocks_.size()) return malformed_reply();
        Block& block = blocks_[index];
        if (!block.tool || block.has_arguments) return {};
        block.has_arguments = true;
        domain::ToolCallDelta& call = deltas.emplace_back().tool_calls.emplace_back();
        call.index = block.call;
        call.arguments = "{}";
        return {};
    }

    Result<void> read_end(const json::object& event, std::vector<Delta>& deltas) {
        Delta& delta = deltas.emplace_back();
        if (const json::object* end = object_in(event, "delta")) {
            delta.finish = finish_of(text_in(*end, "stop_reason"));
            delta.stop_sequence = text_in(*end, "stop_sequence");
        }
        if (delta.finish) done_ = true;
        read_usage(event, usage_);
        delta.usage = usage_;
        return {};
    }

    SseReader events_;
    std::vector<Block> blocks_;
    std::uint32_t calls_ = 0;
    domain::Usage usage_;
    bool done_ = false;  // a stop_reason or message_stop came
};

class AnthropicWholeDecoder final : public ReplyDecoderBase {
public:
    Result<std::vector<Delta>> piece(std::string_view bytes) override {
        TRY_DO(body_.piece(bytes));
        return std::vector<Delta>();
    }

    Result<std::vector<Delta>> end() override {
        TRY(const json::value value, parse_reply(body_.text()));
        const json::object* message = value.if_object();
        if (message == nullptr) return malformed_reply();
        if (text_in(*message, "type") == "error") return error_in_reply();
        note_model(*message);
        std::vector<Delta> deltas(1);
        const json::array* content = array_in(*message, "content");
        if (content == nullptr) return malformed_reply();
        for (const json::value& block : *content) {
            if (!block.is_object()) return malformed_reply();
            read_block(block.get_object(), deltas[0]);
        }
        deltas[0].finish = finish_of(text_in(*message, "stop_reason"));
        deltas[0].stop_sequence = text_in(*message, "stop_sequence");
        if (!deltas[0].finish) return incomplete_reply();
        read_usage(*message, deltas[0].usage.emplace());
        return deltas;
    }

private:
    static void read_block(const json::object& block, Delta& delta) {
        const std::string_view type = text_in(block, "type");
        delta.text += text_in(block, "text");
        delta.reasoning += text_in(block, "thinking");
        if (type != "tool_use") return;
        domain::ToolCallDelta call;
        call.index = static_cast<std::uint32_t>(delta.tool_calls.size());
        call.id = text_in(block, "id");
        call.name = text_in(block, "name");
        const json::value* input = block.if_contains("input");
        call.arguments = input == nullptr ? "{}" : to_text(*input);
        delta.tool_calls.push_back(std::move(call));
    }

    WholeReply body_;
};

}  // namespace

std::unique_ptr<ReplyDecoder> make_anthropic_reply(bool stream) {
    if (stream) return std::make_unique<AnthropicStreamDecoder>();
    return std::make_unique<AnthropicWholeDecoder>();
}

}  // namespace molly::dialects
