// The face in front of a real pipeline, store and members; only the target is scripted.
#include "gateway/gateway_fixture.h"

namespace molly::gateway {
namespace {

using fixture::GatewayTest;
using fixture::Reply;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(GatewayTest, answers_a_whole_chat_with_its_headers) {
    const Reply reply = chat(R"("model":"small")");
    EXPECT_EQ(reply.status, 200) << reply.body;
    EXPECT_THAT(reply.body, HasSubstr("hello world"));
    EXPECT_EQ(reply.header("x-molly-target"), "small");
    EXPECT_EQ(reply.header("x-molly-tier"), "T0");
    EXPECT_EQ(reply.header("x-molly-alias"), "");
    EXPECT_THAT(reply.header("x-molly-receipt"), ::testing::StartsWith("req_"));
}

TEST_F(GatewayTest, a_stream_ends_after_its_trace_is_committed) {
    const Reply reply = chat(R"("model":"small","stream":true)");
    EXPECT_TRUE(reply.streamed);
    EXPECT_EQ(reply.header("content-type"), "text/event-stream");
    EXPECT_TRUE(reply.body.ends_with("data: [DONE]\n\n")) << reply.body;
    const std::string id = reply.header("x-molly-receipt");
    const Reply trace = call("GET", ("/molly/v1/traces/" + id).c_str());
    EXPECT_EQ(trace.status, 200);
    EXPECT_THAT(trace.body, HasSubstr("\"outcome\":\"answered\""));
    EXPECT_THAT(trace.body, Not(HasSubstr("hello")));
    const Reply receipt = call("GET", ("/molly/v1/receipts/" + id).c_str());
    EXPECT_EQ(receipt.status, 200) << receipt.body;
}

TEST_F(GatewayTest, a_target_that_dies_in_the_stream_leaves_an_error_and_a_proper_end) {
    local_.fails_later = Error(ErrorCode::upstream_failed, "it broke off");
    const Reply reply = chat(R"("model":"small","stream":true)");
    EXPECT_EQ(reply.status, 200);
    EXPECT_THAT(reply.body, HasSubstr("hello"));
    EXPECT_THAT(reply.body, HasSubstr("\"error\""));
    EXPECT_TRUE(reply.body.ends_with("data: [DONE]\n\n"));
    EXPECT_TRUE(big_.seen.empty());
}

TEST_F(GatewayTest, a_failure_before_the_first_piece_is_an_http_error) {
    local_.fails_first =
        Error(ErrorCode::rate_limited, "slow down").retry_after(std::chrono::seconds(7));
    const Reply reply = chat(R"("model":"small","stream":true)");
    EXPECT_FALSE(reply.streamed);
    EXPECT_EQ(reply.status, 429);
    EXPECT_EQ(reply.header("retry-after"), "7");
    EXPECT_THAT(reply.body, HasSubstr("slow down (attempts: small rate_limited)"));
    EXPECT_NE(reply.header("x-molly-receipt"), "");
}

TEST_F(GatewayTest, a_stream_is_kept_alive_while_the_target_thinks) {
    Options options;
    options.keep_alive = std::chrono::milliseconds(60);
    build(options);
    local_.thinks = std::chrono::milliseconds(400);
    const Reply reply = chat(R"("model":"small","stream":true)");
    EXPECT_EQ(reply.status, 200);
    EXPECT_THAT(reply.body, HasSubstr("\n: "));
    EXPECT_LT(reply.body.find("\n: "), reply.body.find("hello"));
    EXPECT_TRUE(reply.body.ends_with("data: [DONE]\n\n"));
    local_.fails_first = Error(ErrorCode::unavailable, "gone");
    const Reply failed = chat(R"("model":"small","stream":true)");
    EXPECT_EQ(failed.status, 200) << "the headers had left";
    EXPECT_THAT(failed.body, HasSubstr("\"error\""));
    EXPECT_TRUE(failed.body.ends_with("data: [DONE]\n\n"));
}

TEST_F(GatewayTest, foreign_names_are_aliases_and_say_so) {
    const Reply reply = chat(R"("model":"gpt-4o")");
    EXPECT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(reply.header("x-molly-alias"), "gpt-4o");
    EXPECT_EQ(chat(R"("model":"nobody")").status, 404);
}

TEST_F(GatewayTest, a_header_cannot_be_smuggled_in_by_a_model_name) {
    const Reply reply = chat(R"("model":"gpt-4o\r\nx-evil: 1")");
    for (const auto& [name, value] : reply.headers)
        EXPECT_THAT(value, Not(HasSubstr("\n")));
}

TEST_F(GatewayTest, errors_take_the_shape_of_the_path) {
    const Reply openai = call("POST", "/v1/chat/completions", "{", {}, "");
    EXPECT_EQ(openai.status, 401);
    EXPECT_THAT(openai.body, HasSubstr("\"error\":{\"message\""));
    EXPECT_NE(openai.header("www-authenticate"), "");
    EXPECT_THAT(call("POST", "/v1/messages", "{", {}, "").body, HasSubstr("\"type\":\"error\""));
    EXPECT_THAT(call("POST", "/api/chat", "{", {}, "").body, HasSubstr("{\"error\":\""));
    const Reply italian = call("GET", "/molly/v1/whoami", "", {{"accept-language", "it-IT"}}, "");
    EXPECT_THAT(italian.body, HasSubstr("manca la chiave"));
    EXPECT_EQ(call("GET", "/molly/v1/nothing").status, 404);
    const Reply method = call("PUT", "/v1/models");
    EXPECT_EQ(method.status, 405);
    EXPECT_EQ(method.header("allow"), "GET");
}

TEST_F(GatewayTest, wrong_keys_are_never_quoted) {
    const Reply reply =
        call("GET", "/molly/v1/whoami", "", {}, "molly-0123456789012345678901234567890123456789");
    EXPECT_EQ(reply.status, 401);
    EXPECT_THAT(reply.body, Not(HasSubstr("01234567890123")));
}

TEST_F(GatewayTest, a_completion_repeats_its_prompt_once) {
    const Reply reply =
        call("POST", "/v1/completions", R"({"model":"small","prompt":"say: ","echo":true})");
    EXPECT_THAT(reply.body, HasSubstr("\"text\":\"say: hello world\"")) << reply.body;
    EXPECT_FALSE(local_.seen.back().echo);
    EXPECT_EQ(reply.header("x-request-id"), reply.header("x-molly-receipt"));
}

TEST_F(GatewayTest, foreign_pages_and_rebound_names_are_refused) {
    const Reply host = call("GET", "/molly/v1/health", "", {{"host", "evil.example"}});
    EXPECT_EQ(host.status, 403);
    const Reply origin = call("GET", "/molly/v1/health", "", {{"origin", "https://evil.example"}});
    EXPECT_EQ(origin.status, 403);
    Options options;
    options.origins = {"https://app.example"};
    build(options);
    const Reply preflight = call(
        "OPTIONS", "/v1/chat/completions", "",
        {{"origin", "https://app.example"}, {"access-control-request-headers", "authorization"}},
        "");
    EXPECT_EQ(preflight.status, 204);
    EXPECT_EQ(preflight.header("access-control-allow-origin"), "https://app.example");
    EXPECT_EQ(
        call("OPTIONS", "/v1/chat/completions", "", {}, "").header("access-control-allow-origin"),
        "");
}

TEST_F(GatewayTest, a_key_for_one_model_reaches_no_other) {
    members::Scope scope;
    scope.member = "anna";
    scope.models = {"small"};
    const std::string key = make_key(&admin_.key, scope).text;
    const Reply models = call("GET", "/v1/models", "", {}, key);
    EXPECT_THAT(models.body, HasSubstr("\"small\""));
    EXPECT_THAT(models.body, Not(HasSubstr("\"big\"")));
    EXPECT_THAT(models.body, Not(HasSubstr("\"auto\"")));
    EXPECT_EQ(chat(R"("model":"small")", key).status, 200);
    EXPECT_EQ(chat(R"("model":"big")", key).status, 403);
    const Reply query =
        call("POST", "/v1/chat/completions?model=big",
             R"({"model":"small","messages":[{"role":"user","content":"x"}]})", {}, key);
    EXPECT_EQ(query.header("x-molly-target"), "small");
    const Reply twice = call("POST", "/v1/chat/completions",
                             R"({"model":"small","model":"big","messages":[]})", {}, key);
    EXPECT_EQ(twice.status, 400);
    EXPECT_TRUE(big_.seen.empty());
    EXPECT_EQ(call("GET", "/v1/models/big", "", {}, key).status, 404);
}

TEST_F(GatewayTest, members_see_their_own_records_only) {
    members::Scope anna;
    anna.member = "anna";
    const std::string hers = make_key(&admin_.key, anna).text;
    const std::string id = chat(R"("model":"small")").header("x-molly-receipt");
    EXPECT_EQ(call("GET", ("/molly/v1/traces/" + id).c_str(), "", {}, hers).status, 404);
    EXPECT_EQ(call("GET", ("/molly/v1/receipts/" + id).c_str(), "", {}, hers).status, 404);
    EXPECT_EQ(call("GET", "/molly/v1/traces", "", {}, hers).body, "{\"traces\":[]}");
    EXPECT_EQ(call("GET", "/molly/v1/traces?member=owner", "", {}, hers).body, "{\"traces\":[]}");
    chat(R"("model":"small")", hers);
    EXPECT_THAT(call("GET", "/molly/v1/traces", "", {}, hers).body, HasSubstr("\"anna\""));
    EXPECT_EQ(call("GET", "/metrics", "", {}, hers).status, 403);
    EXPECT_EQ(call("GET", "/metrics").status, 200);
}

TEST_F(GatewayTest, keys_are_made_listed_and_revoked) {
    const Reply made = call("POST", "/molly/v1/keys", R"({"member":"bruno"})");
    EXPECT_EQ(made.status, 201) << made.body;
    EXPECT_THAT(made.body, HasSubstr("\"key\":\"molly-"));
    EXPECT_THAT(call("GET", "/molly/v1/keys").body, HasSubstr("bruno"));
    EXPECT_THAT(call("GET", "/molly/v1/keys").body, Not(HasSubstr("\"key\":\"molly-")));
    EXPECT_EQ(call("DELETE", "/molly/v1/keys/key_none").status, 404);
}

TEST_F(GatewayTest, explain_decides_without_an_attempt) {
    const Reply reply = call("POST", "/molly/v1/explain",
                             R"({"model":"auto","messages":[{"role":"user","content":"x"}]})");
    EXPECT_EQ(reply.status, 200) << reply.body;
    EXPECT_THAT(reply.body, HasSubstr("\"permitted\":[\"T0\",\"T1\"]"));
    EXPECT_THAT(reply.body, HasSubstr("\"candidates\""));
    EXPECT_TRUE(local_.seen.empty());
}

TEST_F(GatewayTest, responses_continue_their_conversation) {
    const Reply first = call("POST", "/v1/responses", R"({"model":"small","input":"one"})");
    ASSERT_EQ(first.status, 200) << first.body;
    const auto parsed = parse_json(first.body);
    ASSERT_TRUE(parsed);
    const std::string id(parsed->as_object().at("id").as_string());
    const Reply stored = call("GET", ("/v1/responses/" + id).c_str());
    EXPECT_EQ(stored.status, 200) << stored.body;
    EXPECT_THAT(stored.body, HasSubstr("hello world"));
    const Reply second =
        call("POST", "/v1/responses",
             R"({"model":"small","input":"two","previous_response_id":")" + id + "\"}");
    ASSERT_EQ(second.status, 200) << second.body;
    ASSERT_EQ(local_.seen.back().messages.size(), 3U);
    EXPECT_EQ(text_of(local_.seen.back().messages[0]), "one");
    EXPECT_EQ(text_of(local_.seen.back().messages[1]), "hello world");
    EXPECT_EQ(text_of(local_.seen.back().messages[2]), "two");
    EXPECT_EQ(call("DELETE", ("/v1/responses/" + id).c_str()).status, 200);
    EXPECT_EQ(call("GET", ("/v1/responses/" + id).c_str()).status, 404);
}

TEST_F(GatewayTest, a_secret_first_turn_makes_its_chain_secret) {
    const Reply first = call("POST", "/v1/responses",
                             R"({"model":"small","input":"one","molly":{"class":"secret"}})");
    ASSERT_EQ(first.status, 200) << first.body;
    const auto parsed = parse_json(first.body);
    const std::string id(parsed->as_object().at("id").as_string());
    const Reply second =
        call("POST", "/v1/responses",
             R"({"model":"small","input":"two","previous_response_id":")" + id + "\"}");
    ASSERT_EQ(second.status, 200) << second.body;
    const std::string trace = "/molly/v1/traces/" + second.header("x-molly-receipt");
    EXPECT_THAT(call("GET", trace.c_str()).body, HasSubstr("\"label\":{\"class\":\"secret\""));
}

TEST_F(GatewayTest, anonymous_callers_need_a_declared_key) {
    const std::string body =
        R"({"model":"small:latest","messages":[{"role":"user","content":"x"}]})";
    EXPECT_EQ(call("POST", "/api/chat", body, {}, "").status, 401);
    Options options;
    options.anonymous_key_id = admin_.key.id;
    build(options);
    const Reply reply = call("POST", "/api/chat", body, {}, "");
    EXPECT_EQ(reply.status, 200) << reply.body;
    EXPECT_THAT(reply.body, HasSubstr("\"done\":true"));
    EXPECT_EQ(call("POST", "/api/chat", body, {{"x-forwarded-for", "192.0.2.7"}}, "").status, 401)
        << "a proxy on this machine speaks for others";
}

TEST_F(GatewayTest, the_owners_token_stands_for_a_key) {
    Options options;
    options.local_token = "local-token";
    options.local_key_id = admin_.key.id;
    build(options);
    EXPECT_EQ(call("GET", "/molly/v1/whoami", "", {}, "local-token").status, 200);
    EXPECT_EQ(call("GET", "/molly/v1/whoami", "", {}, "local-tokex").status, 401);
    const Reply italian = call("POST", "/v1/chat/completions",
                               R"({"model":"nobody","messages":[{"role":"user","content":"x"}]})",
                               {{"accept-language", "it"}}, "local-token");
    EXPECT_THAT(italian.body, HasSubstr("nessuna destinazione"));
}

TEST_F(GatewayTest, health_without_a_key_says_only_that_it_lives) {
    EXPECT_EQ(call("GET", "/molly/v1/health", "", {}, "").body, "{\"status\":\"ok\"}");
    EXPECT_THAT(call("GET", "/molly/v1/health").body, HasSubstr("\"version\":\"9.9.9\""));
}

TEST_F(GatewayTest, lists_speak_every_dialect) {
    EXPECT_THAT(call("GET", "/v1/models").body, HasSubstr("\"object\":\"list\""));
    EXPECT_THAT(call("GET", "/v1/models", "", {{"anthropic-version", "2023-06-01"}}).body,
                HasSubstr("\"has_more\":false"));
    EXPECT_THAT(call("GET", "/api/tags").body, HasSubstr("\"name\":\"small\""));
    EXPECT_THAT(call("POST", "/api/show", R"({"model":"small:latest"})").body,
                HasSubstr("\"capabilities\":[\"completion\""));
    EXPECT_EQ(call("POST", "/api/show", R"({"model":"none"})").status, 404);
    EXPECT_THAT(call("POST", "/v1/messages/count_tokens",
                     R"({"model":"small","messages":[{"role":"user","content":"hello there"}]})")
                    .body,
                HasSubstr("\"estimate\":true"));
    EXPECT_THAT(call("POST", "/api/embeddings", R"({"model":"small","prompt":"x"})").body,
                HasSubstr("\"embedding\":["));
}

}  // namespace
}  // namespace molly::gateway
