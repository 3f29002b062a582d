// Labels that stick, seen from the face, and the act that lowers them.
#include "gateway/gateway_fixture.h"

namespace molly::gateway {
namespace {

using fixture::GatewayTest;
using fixture::Reply;
using ::testing::HasSubstr;

TEST_F(GatewayTest, a_history_that_is_sent_again_keeps_the_class_that_was_declared) {
    const Reply first = call("POST", "/v1/responses",
                             R"({"model":"small","input":"one","molly":{"class":"secret"}})");
    ASSERT_EQ(first.status, 200) << first.body;
    const std::string history =
        R"({"model":"small","input":[{"role":"user","content":"one"},)"
        R"({"role":"assistant","content":"hello world"},{"role":"user","content":"two"}]})";
    const Reply second = call("POST", "/v1/responses", history);
    ASSERT_EQ(second.status, 200) << second.body;
    const auto shown = [&](const Reply& reply) {
        return call("GET", ("/molly/v1/traces/" + reply.header("x-molly-receipt")).c_str()).body;
    };
    EXPECT_THAT(shown(second), HasSubstr("\"label\":{\"class\":\"secret\""));
    // A call that chains to the second knows the conversation by the same name.
    const auto parsed = parse_json(second.body);
    const std::string id(parsed->as_object().at("id").as_string());
    const Reply third =
        call("POST", "/v1/responses",
             R"({"model":"small","input":"three","previous_response_id":")" + id + "\"}");
    ASSERT_EQ(third.status, 200) << third.body;
    EXPECT_THAT(shown(third), HasSubstr("\"label\":{\"class\":\"secret\""));
    const auto name = [](const std::string& trace) {
        return std::string(parse_json(trace)->as_object().at("conversation").as_string());
    };
    EXPECT_EQ(name(shown(third)), name(shown(first)));
}

TEST_F(GatewayTest, what_was_found_in_the_first_turn_sticks_to_its_chain) {
    const auto shown_class = [&](const Reply& reply) {
        const Reply trace =
            call("GET", ("/molly/v1/traces/" + reply.header("x-molly-receipt")).c_str());
        const json::value parsed = *parse_json(trace.body);
        return std::string(parsed.at("label").at("class").as_string());
    };
    const std::string open = R"(,"model":"small","molly":{"class":"public"}})";
    const Reply first =
        call("POST", "/v1/responses", R"({"input":"pay IT60X0542811101000000123456")" + open);
    ASSERT_EQ(first.status, 200) << first.body;
    EXPECT_EQ(shown_class(first), "private");
    const std::string id(parse_json(first.body)->as_object().at("id").as_string());
    const Reply second = call("POST", "/v1/responses",
                              R"({"input":"thanks","previous_response_id":")" + id + "\"" + open);
    ASSERT_EQ(second.status, 200) << second.body;
    EXPECT_EQ(shown_class(second), "private");
}

TEST_F(GatewayTest, a_conversation_is_declassified_by_a_key_that_may_and_says_why) {
    const std::string turn =
        R"({"model":"small","messages":[{"role":"user","content":"x"}],"molly":{"conversation":"case")";
    ASSERT_EQ(call("POST", "/v1/chat/completions", turn + R"(,"class":"secret"}})").status, 200);
    const std::string act =
        R"({"conversation":"owner/case","class":"private","reason":"it was announced"})";
    members::Scope plain;
    plain.member = "owner";
    const std::string without = make_key(&admin_.key, plain).text;
    const Reply refused = call("POST", "/molly/v1/declassify", act, {}, without);
    EXPECT_EQ(refused.status, 403) << refused.body;
    EXPECT_THAT(refused.body, HasSubstr("declassify_not_in_scope"));
    const Reply done = call("POST", "/molly/v1/declassify", act);
    ASSERT_EQ(done.status, 200) << done.body;
    EXPECT_THAT(done.body, HasSubstr(R"("lowered":{"from":"secret","to":"private")"));
    const Reply receipt =
        call("GET", ("/molly/v1/receipts/" + done.header("x-molly-receipt")).c_str());
    EXPECT_THAT(receipt.body, HasSubstr(R"("operation":"declassify")"));
    const Reply later = call("POST", "/v1/chat/completions", turn + "}}");
    EXPECT_THAT(call("GET", ("/molly/v1/traces/" + later.header("x-molly-receipt")).c_str()).body,
                HasSubstr("\"label\":{\"class\":\"private\""));
    for (const char* bad : {R"({"conversation":"owner/case","class":"low","reason":"x"})",
                            R"({"class":"private","reason":"x"})", "[]"})
        EXPECT_EQ(call("POST", "/molly/v1/declassify", bad).status, 400) << bad;
}

}  // namespace
}  // namespace molly::gateway
