// One failure in the shape of each face.
#include "dialects/dialects.h"
#include "dialects/internal/json_text.h"
#include "dialects/internal/openai.h"

namespace molly::dialects {
namespace {

/// What an error code is called on each side.
struct Shape {
    int status = 500;
    std::string_view openai_type;
    std::string_view openai_code;  // where the error has no more precise reason
    std::string_view anthropic_type;
};

Shape shape_of(ErrorCode code) noexcept {
    switch (code) {
        case ErrorCode::invalid_request:
            return {400, "invalid_request_error", "", "invalid_request_error"};
        case ErrorCode::unauthenticated:
            return {401, "invalid_request_error", "invalid_api_key", "authentication_error"};
        case ErrorCode::denied:
            return {403, "permission_error", "denied", "permission_error"};
        case ErrorCode::not_found:
            return {404, "invalid_request_error", "not_found", "not_found_error"};
        case ErrorCode::conflict:
            return {409, "invalid_request_error", "conflict", "invalid_request_error"};
        case ErrorCode::too_large:
            return {413, "invalid_request_error", "request_too_large", "request_too_large"};
        case ErrorCode::rate_limited:
            return {429, "rate_limit_error", "rate_limit_exceeded", "rate_limit_error"};
        case ErrorCode::exhausted:
            return {429, "rate_limit_error", "exhausted", "rate_limit_error"};
        case ErrorCode::cancelled:
            return {499, "invalid_request_error", "cancelled", "invalid_request_error"};
        case ErrorCode::deadline_exceeded:
            return {504, "server_error", "deadline_exceeded", "timeout_error"};
        case ErrorCode::unavailable:
            return {503, "server_error", "unavailable", "overloaded_error"};
        case ErrorCode::upstream_failed:
            return {502, "server_error", "upstream_failed", "api_error"};
        case ErrorCode::corrupt:
            return {500, "server_error", "corrupt", "api_error"};
        case ErrorCode::unsupported:
            return {400, "invalid_request_error", "unsupported", "invalid_request_error"};
        case ErrorCode::internal:
            return {500, "server_error", "internal", "api_error"};
    }
    return {500, "server_error", "internal", "api_error"};
}

std::string anthropic_error_body(const Error& error, std::string_view request_id) {
    std::string out;
    JsonText json(out);
    json.open()
        .field("type", "error")
        .key("error")
        .open()
        .field("type", shape_of(error.code()).anthropic_type)
        .field("message", error.message())
        .close()
        .key("request_id");
    if (request_id.empty()) {
        json.null();
    } else {
        json.string(request_id);
    }
    json.close();
    return out;
}

std::string ollama_error_body(const Error& error) {
    std::string out;
    JsonText(out).open().field("error", error.message()).close();
    return out;
}

}  // namespace

std::string openai_error_body(const Error& error) {
    const Shape shape = shape_of(error.code());
    const std::string_view code =
        error.reason().empty() ? shape.openai_code : std::string_view(error.reason());
    std::string out;
    JsonText json(out);
    json.open().key("error").open().field("message", error.message());
    json.field("type", shape.openai_type);
    if (error.param().empty()) {
        json.null_field("param");
    } else {
        json.field("param", error.param());
    }
    if (code.empty()) {
        json.null_field("code");
    } else {
        json.field("code", code);
    }
    json.close().close();
    return out;
}

int status_of(const Error& error) noexcept {
    return shape_of(error.code()).status;
}

ErrorReply encode_error(Face face, const Error& error, std::string_view request_id) {
    const int status = status_of(error);
    switch (face) {
        case Face::openai_chat:
        case Face::openai_completions:
        case Face::openai_responses:
        case Face::openai_embeddings:
            return {.status = status, .body = openai_error_body(error)};
        case Face::anthropic_messages:
            return {.status = status, .body = anthropic_error_body(error, request_id)};
        case Face::ollama_chat:
        case Face::ollama_generate:
        case Face::ollama_embed:
            return {.status = status, .body = ollama_error_body(error)};
    }
    return {.status = status, .body = openai_error_body(error)};
}

}  // namespace molly::dialects
