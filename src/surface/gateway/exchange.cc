#include "gateway/exchange.h"

#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "gateway/guard.h"

namespace molly::gateway {
namespace {

std::string molly_error(Language language, const Error& error) {
    std::string body = "{\"error\":{\"code\":";
    append_json_string(body, to_string(error.code()));
    body += ",\"message\":";
    append_json_string(body, message_in(error, language));
    if (!error.reason().empty()) body += ",\"reason\":" + json_string(error.reason());
    if (!error.param().empty()) body += ",\"param\":" + json_string(error.param());
    if (const auto wait = error.retry_after())
        body += fmt::format(",\"retry_after_s\":{}", wait->count());
    body += "}}";
    return body;
}

dialects::Face face_of(Shape shape) noexcept {
    if (shape == Shape::anthropic) return dialects::Face::anthropic_messages;
    if (shape == Shape::ollama) return dialects::Face::ollama_chat;
    return dialects::Face::openai_chat;
}

}  // namespace

std::string owner_of(const members::Key& key) {
    return key.scope.member.empty() ? key.id : key.scope.member;
}

std::string json_string(std::string_view text) {
    std::string out;
    append_json_string(out, text);
    return out;
}

dialects::ErrorReply shape_error(Shape shape, Language language, const Error& error,
                                 std::string_view request_id) {
    if (shape != Shape::molly) return dialects::encode_error(face_of(shape), error, request_id);
    dialects::ErrorReply reply;
    reply.status = dialects::status_of(error);
    reply.body = molly_error(language, error);
    return reply;
}

Exchange::Exchange(const Parts& its_parts, const Options& its_options,
                   net::HttpRequest& its_request, net::Responder& its_responder)
    : parts(its_parts),
      options(its_options),
      request(its_request),
      responder(its_responder),
      shape(shape_of(its_request.path)),
      language(language_of(net::header(its_request.headers, "accept-language"))),
      extra(cors_headers(its_request.headers, its_options.origins)) {}

net::Headers Exchange::headers(std::string_view content_type, const net::Headers& more) const {
    net::Headers all;
    if (!content_type.empty()) all.emplace_back("content-type", content_type);
    all.insert(all.end(), extra.begin(), extra.end());
    all.insert(all.end(), more.begin(), more.end());
    return all;
}

Task<void> Exchange::send(int status, std::string_view content_type, std::string body,
                          net::Headers more) {
    net::HttpReply reply;
    reply.status = status;
    reply.headers = headers(content_type, more);
    reply.body = std::move(body);
    // A caller that has gone needs no answer: there is nobody to tell.
    [[maybe_unused]] const auto sent = co_await responder.reply(std::move(reply));
}

Task<void> Exchange::send(int status, std::string_view content_type, std::string body) {
    co_await send(status, content_type, std::move(body), net::Headers());
}

Task<void> Exchange::send_json(std::string body) {
    co_await send(200, "application/json", std::move(body), net::Headers());
}

Error Exchange::told(const Error& error) const {
    const bool owner = authenticated && key.id == options.local_key_id;
    if (!owner || language == Language::english) return error;
    Error out(error.code(), error.message_italian());
    if (error.retry_after()) std::ignore = std::move(out).retry_after(*error.retry_after());
    return std::move(out).reason(error.reason()).param(error.param());
}

Task<void> Exchange::send_error(const Error& error, net::Headers more) {
    const dialects::ErrorReply shaped = shape_error(shape, language, told(error), request_id);
    if (const auto wait = error.retry_after())
        more.emplace_back("retry-after", std::to_string(wait->count()));
    if (error.code() == ErrorCode::unauthenticated)
        more.emplace_back("www-authenticate", "Bearer realm=\"molly\"");
    co_await send(shaped.status, "application/json", shaped.body, std::move(more));
}

Task<void> Exchange::send_error(const Error& error) {
    co_await send_error(error, net::Headers());
}

}  // namespace molly::gateway
