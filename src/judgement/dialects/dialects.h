#pragma once
// The foreign APIs as pure codecs: text in, domain values out, and back. No I/O; safe from any
// thread. Used by `gateway` (we are the server) and by `targets` (we are the client).
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/result.h"
#include "domain/request.h"
#include "domain/response.h"
#include "domain/target.h"

namespace molly::dialects {

/// Each face of the server. One request type inside, one encoder a face.
enum class Face : std::uint8_t {
    openai_chat,         ///< POST /v1/chat/completions
    openai_completions,  ///< POST /v1/completions
    openai_responses,    ///< POST /v1/responses
    openai_embeddings,   ///< POST /v1/embeddings
    anthropic_messages,  ///< POST /v1/messages
    ollama_chat,         ///< POST /api/chat
    ollama_generate,     ///< POST /api/generate
    ollama_embed,        ///< POST /api/embed (and the older /api/embeddings)
};

/// Facts about an answer that the encoders put into ids and times.
struct Envelope {
    std::string id;     ///< the request's id
    std::string model;  ///< the model name to answer with
    WallTime created;
    bool usage_in_stream = false;  ///< OpenAI `stream_options.include_usage`
    bool base64_embeddings = false;
    std::string caveat;    ///< `molly.caveat`
    std::string decision;  ///< `molly.explain`: JSON text, when asked
    /// Read by the faces that echo what was asked (Responses; completions with `echo`, whose prompt
    /// the encoder repeats, not the target). It must outlive the encoding.
    const domain::Request* request = nullptr;
    std::string instructions;          ///< Responses API
    std::string previous_response_id;  ///< Responses API
    bool store = true;                 ///< Responses API
    bool legacy_embeddings = false;    ///< Ollama /api/embeddings
};

/// A request with what only its face needs to know for the answer.
struct Decoded {
    domain::Request request;
    bool usage_in_stream = false;
    bool base64_embeddings = false;
    std::string instructions;          ///< Responses API
    std::string previous_response_id;  ///< Responses API
    bool store = true;                 ///< Responses API
    bool legacy_embeddings = false;    ///< Ollama /api/embeddings
};

/// Decodes a body. The `molly` object of every dialect becomes Request::extensions.
/// Errors: invalid_request with `param`; unsupported (n > 1, audio out, ...), naming the field.
/// Unknown fields are ignored.
Result<Decoded> decode_request(Face face, std::string_view body, const JsonLimits& limits);

/// The whole answer as one JSON body.
std::string encode_response(Face face, const Envelope& envelope, const domain::Response& response);

/// Turns Deltas into the bytes of the face's stream (SSE, or NDJSON for Ollama). One per answer.
class StreamEncoder {
public:
    virtual ~StreamEncoder() = default;
    /// What opens the stream, possibly empty.
    virtual std::string begin() = 0;
    virtual std::string delta(const domain::Delta& delta) = 0;
    /// What ends it properly. `response` is the whole answer.
    virtual std::string end(const domain::Response& response) = 0;
    /// An error frame in the dialect's shape and the proper end of the stream (case 4).
    virtual std::string failed(const Error& error) = 0;
    /// A comment that keeps the connection alive, or empty where the dialect has none.
    virtual std::string keep_alive() = 0;
};
std::unique_ptr<StreamEncoder> make_stream_encoder(Face face, Envelope envelope);

/// `text/event-stream` or `application/x-ndjson`.
std::string_view stream_media_type(Face face) noexcept;

/// An error as the dialect shapes it.
struct ErrorReply {
    int status = 500;
    std::string body;
};
/// `request_id` goes into the shapes that have a place for it (Anthropic).
ErrorReply encode_error(Face face, const Error& error, std::string_view request_id = {});

/// The HTTP status of an error code: the one exhaustive switch.
int status_of(const Error& error) noexcept;

// The client side.

/// A request for an upstream.
struct UpstreamRequest {
    std::string path;  ///< below the endpoint's base path, such as `/chat/completions`
    std::vector<std::pair<std::string, std::string>> headers;  ///< without credentials
    std::string body;
};
/// Errors: unsupported, when the dialect cannot say what the request needs.
Result<UpstreamRequest> encode_upstream(domain::Dialect dialect, const domain::Request& request,
                                        const std::string& model);

/// Reads an upstream's reply piece by piece, streamed or whole. Pieces may cut anywhere, inside a
/// code point too.
class ReplyDecoder {
public:
    virtual ~ReplyDecoder() = default;
    /// Deltas that are complete now. Errors: upstream_failed (malformed chunk, error frame).
    virtual Result<std::vector<domain::Delta>> piece(std::string_view bytes) = 0;
    /// At the end of the body. Errors: upstream_failed, when the answer is not complete (no
    /// terminator).
    virtual Result<std::vector<domain::Delta>> end() = 0;
    /// The model's name as the upstream reported it.
    virtual const std::string& model() const noexcept = 0;
    /// Vectors of an embedding request, after `end`. shape: [inputs, embed]
    virtual std::vector<std::vector<float>> take_embeddings() = 0;
};
std::unique_ptr<ReplyDecoder> make_reply_decoder(domain::Dialect dialect,
                                                 domain::Operation operation, bool stream);

/// The error that an upstream's status and body mean. Never quotes the body, which may quote a key
/// (case 25).
Error decode_upstream_error(domain::Dialect dialect, int status, std::string_view body,
                            std::string_view retry_after);

}  // namespace molly::dialects
