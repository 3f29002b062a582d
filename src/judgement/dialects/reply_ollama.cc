// An Ollama upstream's reply, whole or as lines of JSON, as Deltas.
#include <fmt/format.h>

#include "dialects/internal/sse.h"
#include "dialects/internal/upstream.h"

namespace molly::dialects {
namespace {

using domain::Delta;
using domain::FinishReason;

/// An id for a call that came without one: the same call gets the same id in every replay.
std::string call_id(std::string_view name, std::string_view arguments, std::uint32_t index) {
    std::uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a
    for (const std::string_view text : {name, arguments}) {
        for (const char c : text)
            hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
    }
    return fmt::format("call_{:016x}_{}", hash, index);
}

class OllamaReplyDecoder : public ReplyDecoderBase {
protected:
    /// One object: a line of a stream, or the whole reply. Errors: upstream_failed.
    Result<Delta> read(const json::object& reply) {
        if (reply.contains("error")) return error_in_reply();
        note_model(reply);
        Delta delta;
        if (const json::object* message = object_in(reply, "message")) {
            delta.text = text_in(*message, "content");
            delta.reasoning = text_in(*message, "thinking");
            TRY_DO(read_calls(*message, delta));
        } else {
            delta.text = text_in(reply, "response");
            delta.reasoning = text_in(reply, "thinking");
        }
        read_logprobs(reply, delta);
        const json::value* done = reply.if_contains("done");
        if (done != nullptr && done->is_bool() && done->get_bool()) read_end(reply, delta);
        if (reply.contains("embeddings")) TRY_DO(read_embeddings(reply));
        return delta;
    }

    bool done_ = false;

private:
    Result<void> read_calls(const json::object& message, Delta& delta) {
        constexpr std::uint32_t calls_max = 1024;
        const json::array* calls = array_in(message, "tool_calls");
        if (calls == nullptr) return {};
        for (const json::value& entry : *calls) {
            const json::object* call = entry.if_object();
            const json::object* function = call == nullptr ? nullptr : object_in(*call, "function");
            if (function == nullptr || calls_ >= calls_max) return malformed_reply();
            const json::value* arguments = function->if_contains("arguments");
            domain::ToolCallDelta& read = delta.tool_calls.emplace_back();
            read.index = calls_++;
            read.name = text_in(*function, "name");
            read.arguments = arguments == nullptr ? "{}" : to_text(*arguments);
            read.id = text_in(*call, "id");
            if (read.id.empty()) read.id = call_id(read.name, read.arguments, read.index);
        }
        return {};
    }

    static void read_logprobs(const json::object& reply, Delta& delta) {
        const json::array* tokens = array_in(reply, "logprobs");
        if (tokens == nullptr) return;
        for (const json::value& token : *tokens) {
            if (token.is_object()) delta.logprobs.push_back(read_token(token.get_object()));
        }
    }

    void read_end(const json::object& reply, Delta& delta) {
        done_ = true;
        const bool cut = text_in(reply, "done_reason") == "length";
        delta.finish = cut          ? FinishReason::length
                       : calls_ > 0 ? FinishReason::tool_calls
                                    : FinishReason::stop;
        read_counts(reply, delta);
    }

    Result<void> read_embeddings(const json::object& reply) {
        const json::array* rows = array_in(reply, "embeddings");
        if (rows == nullptr) return malformed_reply();
        for (const json::value& row : *rows)
            TRY_DO(add_embedding(&row));
        done_ = true;
        return {};
    }

    std::uint32_t calls_ = 0;

protected:
    static void read_counts(const json::object& reply, Delta& delta) {
        domain::Usage& usage = delta.usage.emplace();
        usage.source = domain::Usage::Source::upstream;
        usage.prompt_tokens = count_in(reply, "prompt_eval_count");
        usage.answer_tokens = count_in(reply, "eval_count");
    }
};

class OllamaStreamDecoder final : public OllamaReplyDecoder {
public:
    Result<std::vector<Delta>> piece(std::string_view bytes) override {
        std::vector<Delta> deltas;
        TRY_DO(lines_.piece(bytes, [&](std::string_view text) { return line(text, deltas); }));
        return deltas;
    }

    Result<std::vector<Delta>> end() override {
        std::vector<Delta> deltas;
        TRY_DO(line(lines_.rest(), deltas));
        if (!done_) return incomplete_reply();
        return deltas;
    }

private:
    Result<void> line(std::string_view text, std::vector<Delta>& deltas) {
        if (text.empty() || done_) return {};
        TRY(const json::value value, parse_reply(text));
        const json::object* reply = value.if_object();
        if (reply == nullptr) return malformed_reply();
        TRY(Delta delta, read(*reply));
        deltas.push_back(std::move(delta));
        return {};
    }

    LineReader lines_;
};

class OllamaWholeDecoder final : public OllamaReplyDecoder {
public:
    Result<std::vector<Delta>> piece(std::string_view bytes) override {
        TRY_DO(body_.piece(bytes));
        return std::vector<Delta>();
    }

    Result<std::vector<Delta>> end() override {
        TRY(const json::value value, parse_reply(body_.text()));
        const json::object* reply = value.if_object();
        if (reply == nullptr) return malformed_reply();
        std::vector<Delta> deltas(1);
        TRY(deltas[0], read(*reply));
        if (!done_) return incomplete_reply();
        if (!deltas[0].usage) read_counts(*reply, deltas[0]);
        return deltas;
    }

private:
    WholeReply body_;
};

}  // namespace

std::unique_ptr<ReplyDecoder> make_ollama_reply(domain::Operation operation, bool stream) {
    if (stream && operation != domain::Operation::embed)
        return std::make_unique<OllamaStreamDecoder>();
    return std::make_unique<OllamaWholeDecoder>();
}

}  // namespace molly::dialects
