// Chooses the client side of a dialect, and what those have in common.
#include "dialects/internal/upstream.h"

#include "dialects/internal/base64.h"

namespace molly::dialects {
namespace {

/// The token's bytes, which may be half a code point; its text where no bytes are given.
std::string token_of(const json::object& token) {
    const json::array* bytes = array_in(token, "bytes");
    if (bytes == nullptr) return std::string(text_in(token, "token"));
    std::string text;
    for (const json::value& byte : *bytes) {
        json::error_code error;
        text += static_cast<char>(byte.to_number<std::uint8_t>(error));
    }
    return text;
}

}  // namespace

std::unexpected<Error> incomplete_reply() {
    return fail(Error(ErrorCode::upstream_failed, "the upstream's answer ended before its end")
                    .reason("upstream_incomplete"));
}

std::unexpected<Error> malformed_reply() {
    return fail(
        Error(ErrorCode::upstream_failed, "the upstream's answer is not what its dialect promises")
            .reason("upstream_malformed"));
}

std::unexpected<Error> error_in_reply() {
    return fail(Error(ErrorCode::upstream_failed, "the upstream reported an error in its answer")
                    .reason("upstream_error"));
}

Result<json::value> ReplyDecoderBase::parse_reply(std::string_view text) {
    memory_.release();
    auto value = parse_json(text, {.bytes_max = WholeReply::bytes_max, .depth_max = 64}, &memory_);
    if (!value) return malformed_reply();
    return value;
}

const json::object* object_in(const json::object& object, std::string_view name) {
    const json::value* value = object.if_contains(name);
    return value == nullptr ? nullptr : value->if_object();
}

const json::array* array_in(const json::object& object, std::string_view name) {
    const json::value* value = object.if_contains(name);
    return value == nullptr ? nullptr : value->if_array();
}

std::string_view text_in(const json::object& object, std::string_view name) {
    const json::value* value = object.if_contains(name);
    const json::string* text = value == nullptr ? nullptr : value->if_string();
    return text == nullptr ? std::string_view() : std::string_view(*text);
}

std::uint32_t count_in(const json::object& object, std::string_view name) {
    const json::value* value = object.if_contains(name);
    if (value == nullptr || !value->is_number()) return 0;
    json::error_code error;
    const auto number = value->to_number<std::uint32_t>(error);
    return error ? 0 : number;
}

float number_in(const json::value& value) {
    json::error_code error;
    const double number = value.to_number<double>(error);
    return error ? 0.0F : static_cast<float>(number);
}

domain::TokenLogprob read_token(const json::object& token) {
    domain::TokenLogprob read;
    read.token = token_of(token);
    if (const json::value* value = token.if_contains("logprob")) read.logprob = number_in(*value);
    const json::array* top = array_in(token, "top_logprobs");
    if (top == nullptr) return read;
    for (const json::value& other : *top) {
        const json::object* alternative = other.if_object();
        if (alternative == nullptr) continue;
        const json::value* value = alternative->if_contains("logprob");
        read.top.emplace_back(token_of(*alternative), value == nullptr ? 0 : number_in(*value));
    }
    return read;
}

void ReplyDecoderBase::note_model(const json::object& reply) {
    if (!model_.empty()) return;
    model_ = text_in(reply, "model");
}

Result<void> ReplyDecoderBase::add_embedding(const json::value* vector) {
    if (vector == nullptr) return malformed_reply();
    std::vector<float>& row = embeddings_.emplace_back();
    if (const json::string* text = vector->if_string()) {
        auto floats = floats_from_base64(*text);
        if (!floats) return malformed_reply();
        row = *std::move(floats);
        return {};
    }
    const json::array* numbers = vector->if_array();
    if (numbers == nullptr) return malformed_reply();
    row.reserve(numbers->size());
    for (const json::value& number : *numbers) {
        json::error_code error;
        row.push_back(static_cast<float>(number.to_number<double>(error)));
        if (error) return malformed_reply();
    }
    return {};
}

Result<void> WholeReply::piece(std::string_view bytes) {
    if (text_.size() + bytes.size() > bytes_max) {
        return fail(Error(ErrorCode::upstream_failed, "the upstream's answer has more than 256 MiB")
                        .reason("upstream_too_large"));
    }
    text_ += bytes;
    return {};
}

Result<UpstreamRequest> encode_upstream(domain::Dialect dialect, const domain::Request& request,
                                        const std::string& model) {
    switch (dialect) {
        case domain::Dialect::openai:
            return encode_upstream_openai(request, model);
        case domain::Dialect::anthropic:
            return encode_upstream_anthropic(request, model);
        case domain::Dialect::ollama:
            return encode_upstream_ollama(request, model);
    }
    return fail(ErrorCode::internal, "a dialect that nobody declared");
}

std::unique_ptr<ReplyDecoder> make_reply_decoder(domain::Dialect dialect,
                                                 domain::Operation operation, bool stream) {
    switch (dialect) {
        case domain::Dialect::openai:
            return make_openai_reply(operation, stream);
        case domain::Dialect::anthropic:
            return make_anthropic_reply(stream);
        case domain::Dialect::ollama:
            return make_ollama_reply(operation, stream);
    }
    return make_openai_reply(operation, stream);
}

}  // namespace molly::dialects
