#include "dialects/dialects.h"

#include <array>

#include <boost/json/monotonic_resource.hpp>

#include "dialects/internal/faces.h"

namespace molly::dialects {
namespace {

void decode(Face face, const Fields& fields, Decoded& decoded) {
    switch (face) {
        case Face::openai_chat:
            return decode_openai_chat(fields, decoded);
        case Face::openai_completions:
            return decode_openai_completion(fields, decoded);
        case Face::openai_responses:
            return decode_openai_response(fields, decoded);
        case Face::openai_embeddings:
            return decode_openai_embedding(fields, decoded);
        case Face::anthropic_messages:
            return decode_anthropic(fields, decoded);
        case Face::ollama_chat:
            return decode_ollama_chat(fields, decoded);
        case Face::ollama_generate:
            return decode_ollama_generate(fields, decoded);
        case Face::ollama_embed:
            return decode_ollama_embed(fields, decoded);
    }
}

}  // namespace

Result<Decoded> decode_request(Face face, std::string_view body, const JsonLimits& limits) {
    // The document lives only as long as this call; most fit in one block on the stack.
    std::array<unsigned char, 8192> block = {};
    json::monotonic_resource memory(block.data(), block.size());
    TRY(const json::value value, parse_json(body, limits, &memory));
    const json::object* object = value.if_object();
    if (object == nullptr)
        return fail(ErrorCode::invalid_request, "the body must be a JSON object");
    const Place top;
    Faults faults;
    Decoded decoded;
    decode(face, Fields(*object, top, faults), decoded);
    if (faults.any()) return fail(faults.take());
    return decoded;
}

std::string encode_response(Face face, const Envelope& envelope, const domain::Response& response) {
    switch (face) {
        case Face::openai_chat:
            return encode_openai_chat(envelope, response);
        case Face::openai_completions:
            return encode_openai_completion(envelope, response);
        case Face::openai_responses:
            return encode_openai_response(envelope, response);
        case Face::openai_embeddings:
            return encode_openai_embedding(envelope, response);
        case Face::anthropic_messages:
            return encode_anthropic(envelope, response);
        case Face::ollama_chat:
        case Face::ollama_generate:
            return encode_ollama(face, envelope, response);
        case Face::ollama_embed:
            return encode_ollama_embed(envelope, response);
    }
    return encode_openai_chat(envelope, response);
}

std::unique_ptr<StreamEncoder> make_stream_encoder(Face face, Envelope envelope) {
    switch (face) {
        case Face::openai_completions:
            return make_openai_completion_stream(std::move(envelope));
        case Face::openai_responses:
            return make_openai_response_stream(std::move(envelope));
        case Face::anthropic_messages:
            return make_anthropic_stream(std::move(envelope));
        case Face::ollama_chat:
        case Face::ollama_generate:
            return make_ollama_stream(face, std::move(envelope));
        case Face::openai_chat:
        case Face::openai_embeddings:
        case Face::ollama_embed:
            break;  // vectors do not stream
    }
    return make_openai_chat_stream(std::move(envelope));
}

std::string_view stream_media_type(Face face) noexcept {
    switch (face) {
        case Face::ollama_chat:
        case Face::ollama_generate:
        case Face::ollama_embed:
            return "application/x-ndjson";
        case Face::openai_chat:
        case Face::openai_completions:
        case Face::openai_responses:
        case Face::openai_embeddings:
        case Face::anthropic_messages:
            break;
    }
    return "text/event-stream";
}

}  // namespace molly::dialects
