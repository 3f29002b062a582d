#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dialects/dialects.h"

namespace molly::dialects {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Errors, EveryCodeHasItsStatus) {
    const std::pair<ErrorCode, int> cases[] = {
        {ErrorCode::invalid_request, 400}, {ErrorCode::unauthenticated, 401},
        {ErrorCode::denied, 403},          {ErrorCode::not_found, 404},
        {ErrorCode::conflict, 409},        {ErrorCode::too_large, 413},
        {ErrorCode::rate_limited, 429},    {ErrorCode::exhausted, 429},
        {ErrorCode::cancelled, 499},       {ErrorCode::deadline_exceeded, 504},
        {ErrorCode::unavailable, 503},     {ErrorCode::upstream_failed, 502},
        {ErrorCode::corrupt, 500},         {ErrorCode::unsupported, 400},
        {ErrorCode::internal, 500}};
    for (const auto& [code, status] : cases)
        EXPECT_EQ(status_of(Error(code, "x")), status) << to_string(code);
}

TEST(Errors, EachFaceHasItsShape) {
    const Error error =
        Error(ErrorCode::not_found, "no model \"x\"").reason("model_not_found").param("model");
    EXPECT_EQ(encode_error(Face::openai_chat, error).body,
              R"({"error":{"message":"no model \"x\"","type":"invalid_request_error",)"
              R"("param":"model","code":"model_not_found"}})");
    EXPECT_EQ(encode_error(Face::anthropic_messages, error, "req_1").body,
              R"({"type":"error","error":{"type":"not_found_error","message":"no model \"x\""},)"
              R"("request_id":"req_1"})");
    EXPECT_EQ(encode_error(Face::ollama_chat, error).body, R"({"error":"no model \"x\""})");
    EXPECT_EQ(encode_error(Face::ollama_chat, error).status, 404);
    EXPECT_THAT(encode_error(Face::openai_embeddings, Error(ErrorCode::unauthenticated, "x")).body,
                HasSubstr(R"("code":"invalid_api_key")"));
}

struct Upstream {
    int status;
    ErrorCode code;
    std::string_view reason;
};

// Case 25: the body of an upstream's refusal may quote a key.
TEST(Errors, UpstreamBodyIsNeverQuoted) {
    const Upstream cases[] = {
        {400, ErrorCode::invalid_request, "upstream_refused"},
        {401, ErrorCode::unavailable, "upstream_unauthenticated"},
        {403, ErrorCode::unavailable, "upstream_unauthenticated"},
        {404, ErrorCode::unavailable, "upstream_not_found"},
        {408, ErrorCode::upstream_failed, "upstream_timeout"},
        {413, ErrorCode::too_large, "upstream_too_large"},
        {422, ErrorCode::invalid_request, "upstream_refused"},
        {429, ErrorCode::rate_limited, "upstream_rate_limited"},
        {500, ErrorCode::upstream_failed, "upstream_failed"},
        {503, ErrorCode::unavailable, "upstream_unavailable"},
        {529, ErrorCode::unavailable, "upstream_unavailable"},
        {302, ErrorCode::upstream_failed, "upstream_failed"},
    };
    for (const Upstream& upstream : cases) {
        const Error error =
            decode_upstream_error(domain::Dialect::openai, upstream.status,
                                  R"({"error":{"message":"bad key sk-secret-1234"}})", "7");
        EXPECT_EQ(error.code(), upstream.code) << upstream.status;
        EXPECT_EQ(error.reason(), upstream.reason) << upstream.status;
        EXPECT_THAT(error.message(), Not(HasSubstr("sk-"))) << upstream.status;
    }
}

TEST(Errors, UpstreamOverflowAndWaitAreUnderstood) {
    const Error overflow = decode_upstream_error(
        domain::Dialect::openai, 400, R"({"error":{"code":"context_length_exceeded"}})", "");
    EXPECT_EQ(overflow.reason(), "context_length_exceeded");
    EXPECT_EQ(overflow.code(), ErrorCode::invalid_request);
    const auto wait = [](std::string_view text) {
        return decode_upstream_error(domain::Dialect::openai, 429, "", text).retry_after();
    };
    EXPECT_EQ(wait("12"), std::chrono::seconds(12));
    for (const std::string_view text :
         {"", "-1", "1.5", "99999999999", "Wed, 21 Oct 2026 07:28:00 GMT"})
        EXPECT_EQ(wait(text), std::nullopt) << text;
}

}  // namespace
}  // namespace molly::dialects
