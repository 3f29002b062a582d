// POST /v1/completions, the older face: a raw prompt and its continuation.
#include <algorithm>

#include "base/utf8.h"
#include "dialects/internal/faces.h"
#include "dialects/internal/openai.h"
#include "dialects/internal/parts.h"

namespace molly::dialects {
namespace {

constexpr std::uint32_t answer_tokens_default = 16;  // as the contract says

void decode_prompt(const Fields& fields, domain::Request& request) {
    const json::value* prompt = fields.find("prompt");
    if (prompt == nullptr) return fields.invalid("prompt", "is required");
    const json::array* several = prompt->if_array();
    if (several != nullptr && several->size() == 1) prompt = several->data();
    if (const json::string* text = prompt->if_string()) {
        request.prompt = domain::Content(std::string(std::string_view(*text)));
        return;
    }
    fields.unsupported("prompt", "must be one text: send one request for each, and no tokens");
}

std::string_view finish_of(domain::FinishReason finish) {
    return finish == domain::FinishReason::tool_calls ? "stop" : to_string(finish);
}

std::uint32_t code_points(std::string_view text) {
    return static_cast<std::uint32_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

/// The older shape: parallel arrays, offsets in characters of the text.
void append_logprobs_arrays(JsonText& json, const std::vector<domain::TokenLogprob>& logprobs,
                            std::uint32_t offset) {
    if (logprobs.empty()) {
        json.null();
        return;
    }
    json.open().key("tokens").open_array();
    for (const domain::TokenLogprob& token : logprobs)
        json.string(token.token);
    json.close_array().key("token_logprobs").open_array();
    for (const domain::TokenLogprob& token : logprobs)
        json.number(token.logprob);
    json.close_array().key("top_logprobs").open_array();
    for (const domain::TokenLogprob& token : logprobs) {
        json.open();
        std::vector<std::string> keys;  // two halves of code points look alike as keys
        for (const auto& [other, logprob] : token.top) {
            std::string key;
            append_json_string(key, other);
            if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
            json.key(std::string_view(key).substr(1, key.size() - 2)).number(logprob);
            keys.push_back(std::move(key));
        }
        json.close();
    }
    json.close_array().key("text_offset").open_array();
    for (const domain::TokenLogprob& token : logprobs) {
        json.number(offset);
        offset += code_points(token.token);
    }
    json.close_array().close();
}

std::string_view echoed(const Envelope& envelope) {
    const bool wanted = envelope.request != nullptr && envelope.request->echo;
    return wanted ? std::string_view(envelope.request->prompt.text()) : std::string_view();
}

void open_completion(JsonText& json, const Envelope& envelope) {
    json.open()
        .field("id", "cmpl-" + envelope.id)
        .field("object", "text_completion")
        .field("created", unix_seconds(envelope.created))
        .field("model", envelope.model)
        .key("choices")
        .open_array();
}

class OpenAiCompletionStream final : public StreamEncoder {
public:
    explicit OpenAiCompletionStream(Envelope envelope) : envelope_(std::move(envelope)) {
        head_ = "data: ";
        JsonText json(head_);
        open_completion(json, envelope_);
    }

    std::string begin() override {
        const std::string_view prompt = echoed(envelope_);
        return prompt.empty() ? std::string() : chunk(prompt, {}, nullptr);
    }

    std::string delta(const domain::Delta& delta) override {
        if (delta.text.empty() && delta.logprobs.empty()) return {};
        return chunk(delta.text, delta.logprobs, nullptr);
    }

    std::string end(const domain::Response& response) override {
        std::string out = chunk({}, {}, &response);
        if (envelope_.usage_in_stream) {
            out += head_;
            out += R"(],"usage":)";
            JsonText json(out);
            append_usage(json, response.usage);
            out += "}\n\n";
        }
        out += sse_done;
        return out;
    }

    std::string failed(const Error& error) override {
        return "data: " + openai_error_body(error) + "\n\n" + std::string(sse_done);
    }

    std::string keep_alive() override { return std::string(sse_keep_alive); }

private:
    std::string chunk(std::string_view text, const std::vector<domain::TokenLogprob>& logprobs,
                      const domain::Response* end) {
        std::string out = head_;
        JsonText json(out);
        json.open().field("index", 0).field("text", text).key("logprobs");
        append_logprobs_arrays(json, logprobs, offset_);
        offset_ += code_points(text);
        if (end == nullptr) {
            json.null_field("finish_reason");
        } else {
            json.field("finish_reason", finish_of(end->finish));
        }
        json.close();
        out += ']';
        if (end != nullptr) append_extensions(json, envelope_, *end);
        out += envelope_.usage_in_stream ? ",\"usage\":null}\n\n" : "}\n\n";
        return out;
    }

    Envelope envelope_;
    std::string head_;
    std::uint32_t offset_ = 0;  // characters sent so far
};

}  // namespace

void decode_openai_completion(const Fields& fields, Decoded& decoded) {
    domain::Request& request = decoded.request;
    request.operation = domain::Operation::complete;
    request.model = fields.required_text("model");
    decode_prompt(fields, request);
    request.suffix = domain::Content(std::string(fields.text_or_empty("suffix")));
    request.echo = fields.flag("echo");
    decode_penalties(fields, request.sampling);
    decode_stop(fields, "stop", request.sampling.stop);
    request.sampling.answer_tokens_max =
        fields.count("max_tokens", 1).value_or(answer_tokens_default);
    if (const auto logprobs = fields.count("logprobs", 0, 20)) {
        request.sampling.logprobs = true;
        request.sampling.top_logprobs = *logprobs;
        if (request.echo) fields.unsupported("logprobs", "cannot go with echo");
    }
    if (fields.count("best_of", 1).value_or(1) > 1)
        fields.unsupported("best_of", "must be 1; send one request for each answer");
    decode_openai_common(fields, decoded);
}

std::string encode_openai_completion(const Envelope& envelope, const domain::Response& response) {
    std::string out;
    JsonText json(out);
    open_completion(json, envelope);
    const std::string_view prompt = echoed(envelope);
    json.open().field("index", 0).field("text", std::string(prompt) + response.text.text());
    json.key("logprobs");
    append_logprobs_arrays(json, response.logprobs, code_points(prompt));
    json.field("finish_reason", finish_of(response.finish)).close().close_array().key("usage");
    append_usage(json, response.usage);
    append_extensions(json, envelope, response);
    json.close();
    return out;
}

std::unique_ptr<StreamEncoder> make_openai_completion_stream(Envelope envelope) {
    return std::make_unique<OpenAiCompletionStream>(std::move(envelope));
}

}  // namespace molly::dialects
