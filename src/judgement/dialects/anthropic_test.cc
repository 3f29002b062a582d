#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dialects/dialects.h"
#include "dialects/internal/answers_for_tests.h"
#include "dialects/internal/replay.h"

namespace molly::dialects {
namespace {

using domain::Dialect;
using domain::FinishReason;
using domain::Operation;
using domain::Role;
using testing::HasSubstr;
using testing::Not;

Result<Decoded> decode(std::string_view body) {
    return decode_request(Face::anthropic_messages, body, {});
}

constexpr std::string_view everything = R"({
  "model":"claude-x","max_tokens":100,"stream":true,
  "system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}},
            {"type":"text","text":"Sii gentile."}],
  "messages":[
    {"role":"user","content":[
      {"type":"text","text":"Look 😀"},
      {"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}},
      {"type":"image","source":{"type":"url","url":"https://example.org/a.png"}},
      {"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"QUJD"}}]},
    {"role":"assistant","content":[
      {"type":"thinking","thinking":"hm","signature":"s"},
      {"type":"redacted_thinking","data":"x"},
      {"type":"text","text":"I look."},
      {"type":"tool_use","id":"tu_1","name":"look","input":{"a":1}},
      {"type":"tool_use","id":"tu_2","name":"find","input":{}}]},
    {"role":"user","content":[
      {"type":"tool_result","tool_use_id":"tu_1","content":"a cat"},
      {"type":"tool_result","tool_use_id":"tu_2","is_error":true,
       "content":[{"type":"text","text":"no"}]},
      {"type":"text","text":"And now?"}]}],
  "tools":[{"name":"look","description":"Looks","input_schema":{"type":"object"}},
           {"type":"custom","name":"find","input_schema":{"type":"object"},"strict":true}],
  "tool_choice":{"type":"tool","name":"look","disable_parallel_tool_use":true},
  "temperature":0.5,"top_p":0.25,"top_k":7,"stop_sequences":["\nUser:"],
  "thinking":{"type":"enabled","budget_tokens":4000},
  "output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}},
  "metadata":{"user_id":"u1"},"molly":{"class":"standard","mode":"cheap"}})";

TEST(Anthropic, DecodesEveryField) {
    const auto decoded = decode(everything);
    ASSERT_TRUE(decoded) << decoded.error().message();
    const domain::Request& request = decoded->request;
    EXPECT_EQ(request.dialect, "anthropic");
    EXPECT_TRUE(request.stream);
    ASSERT_EQ(request.messages.size(), 6U);
    EXPECT_EQ(request.messages[0].role, Role::system);
    EXPECT_EQ(request.messages[0].parts.size(), 2U);
    ASSERT_EQ(request.messages[1].parts.size(), 4U);
    EXPECT_EQ(request.messages[1].parts[1].media_type, "image/png");
    EXPECT_TRUE(request.messages[1].parts[2].is_url);
    EXPECT_EQ(request.messages[1].parts[3].kind, domain::Part::Kind::file);
    EXPECT_EQ(request.messages[2].reasoning.text(), "hm");
    ASSERT_EQ(request.messages[2].tool_calls.size(), 2U);
    EXPECT_EQ(request.messages[2].tool_calls[0].arguments.text(), R"({"a":1})");
    EXPECT_EQ(request.messages[3].role, Role::tool);
    EXPECT_EQ(request.messages[3].tool_call_id, "tu_1");
    EXPECT_TRUE(request.messages[4].tool_failed);
    EXPECT_EQ(text_of(request.messages[5]), "And now?");
    EXPECT_EQ(request.tools.size(), 2U);
    EXPECT_TRUE(request.tools[1].strict);
    EXPECT_EQ(request.tool_choice.kind, domain::ToolChoice::Kind::named);
    EXPECT_FALSE(request.tool_choice.parallel);
    EXPECT_EQ(request.sampling.answer_tokens_max, 100U);
    EXPECT_EQ(request.sampling.top_k, 7U);
    EXPECT_EQ(request.sampling.reasoning_effort, "medium");
    EXPECT_EQ(request.format.schema.text(), R"({"type":"object"})");
    EXPECT_EQ(request.user, "u1");
    EXPECT_EQ(request.extensions.sensitivity, domain::Sensitivity::standard);
    EXPECT_EQ(request.extensions.mode, domain::Mode::cheap);
}

TEST(Anthropic, UpstreamRequestDecodesToTheSameRequest) {
    const auto decoded = decode(everything);
    ASSERT_TRUE(decoded);
    const auto upstream = encode_upstream(Dialect::anthropic, decoded->request, "claude-y");
    ASSERT_TRUE(upstream) << upstream.error().message();
    EXPECT_EQ(upstream->path, "/messages");
    EXPECT_THAT(upstream->body, Not(HasSubstr("molly")));
    const auto again = decode(upstream->body);
    ASSERT_TRUE(again) << again.error().message();
    EXPECT_EQ(again->request.model, "claude-y");
    auto messages = decoded->request.messages;
    messages[2].reasoning = {};  // it would be refused without its signature
    EXPECT_EQ(again->request.messages, messages);
    EXPECT_EQ(again->request.tools, decoded->request.tools);
    EXPECT_EQ(again->request.tool_choice, decoded->request.tool_choice);
    EXPECT_EQ(again->request.format, decoded->request.format);
    EXPECT_EQ(again->request.sampling, decoded->request.sampling);
}

TEST(Anthropic, OpenAiConversationFitsItsTurns) {
    const auto chat = decode_request(Face::openai_chat, R"({"model":"a","messages":[
      {"role":"system","content":"s"},{"role":"user","content":"u"},
      {"role":"assistant","content":null,"tool_calls":[
        {"id":"1","type":"function","function":{"name":"f","arguments":""}}]},
      {"role":"tool","tool_call_id":"1","content":"r"},{"role":"user","content":"v"}]})",
                                     {});
    ASSERT_TRUE(chat);
    const auto upstream = encode_upstream(Dialect::anthropic, chat->request, "m");
    ASSERT_TRUE(upstream);
    EXPECT_EQ(upstream->body,
              R"({"model":"m","system":[{"type":"text","text":"s"}],"messages":[)"
              R"({"role":"user","content":[{"type":"text","text":"u"}]},)"
              R"({"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f",)"
              R"("input":{}}]},{"role":"user","content":[{"type":"tool_result",)"
              R"("tool_use_id":"1","content":[{"type":"text","text":"r"}]},)"
              R"({"type":"text","text":"v"}]}],"max_tokens":4096})");
}

TEST(Anthropic, UpstreamSaysWhatItCannotTake) {
    const std::string_view fields[] = {R"("logprobs":true)", R"("frequency_penalty":1)",
                                       R"("response_format":{"type":"json_object"})"};
    for (const std::string_view field : fields) {
        const auto chat =
            decode_request(Face::openai_chat,
                           R"({"model":"a","messages":[{"role":"user","content":"u"}],)" +
                               std::string(field) + "}",
                           {});
        ASSERT_TRUE(chat);
        const auto upstream = encode_upstream(Dialect::anthropic, chat->request, "m");
        ASSERT_FALSE(upstream) << field;
        EXPECT_EQ(upstream.error().code(), ErrorCode::unsupported);
    }
}

TEST(Anthropic, RefusesBadRequestsAndNamesTheField) {
    const std::pair<std::string_view, std::string_view> cases[] = {
        {R"({"model":"a","messages":[{"role":"user","content":"x"}]})", "max_tokens"},
        {R"({"model":"a","max_tokens":1})", "messages"},
        {R"({"model":"a","max_tokens":1,"messages":[{"role":"user"}]})", "messages[0].content"},
        {R"({"model":"a","max_tokens":1,"messages":[{"role":"robot","content":"x"}]})",
         "messages[0].role"},
        {R"({"model":"a","max_tokens":1,"messages":[{"role":"user","content":7}]})",
         "messages[0].content"},
        {R"({"model":"a","max_tokens":1,"messages":[{"role":"user","content":[{"type":"x"}]}]})",
         "messages[0].content[0].type"},
        {R"({"model":"a","max_tokens":1,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":"x"}]}]})",
         "messages[0].content[0].input"},
        {R"({"model":"a","max_tokens":1,"messages":[{"role":"user","content":"x"}],"tools":[{"type":"bash_20250124","name":"bash"}]})",
         "tools[0].type"},
        {R"({"model":"a","max_tokens":1,"messages":[{"role":"user","content":"x"}],"tool_choice":{"type":"x"}})",
         "tool_choice.type"},
    };
    for (const auto& [body, param] : cases) {
        const auto decoded = decode(body);
        ASSERT_FALSE(decoded) << body;
        EXPECT_EQ(decoded.error().param(), param) << body;
    }
}

TEST(Anthropic, StreamAndWholeSayTheSameInPiecesOfAnySize) {
    const domain::Response response = family_answer();
    const std::string whole =
        encode_response(Face::anthropic_messages, envelope_of(false), response);
    for (const std::size_t code_points : {1U, 2U, 100U}) {
        const std::string stream =
            stream_of(Face::anthropic_messages, envelope_of(false), response, code_points);
        EXPECT_TRUE(utf8_valid(stream));
        for (const std::size_t piece : {1U, 3U, 1000U}) {
            const auto streamed = make_reply_decoder(Dialect::anthropic, Operation::chat, true);
            const auto from_stream = replay_reply(*streamed, stream, piece);
            ASSERT_TRUE(from_stream) << from_stream.error().message();
            expect_same(*from_stream, response);
            EXPECT_EQ(from_stream->usage, response.usage);
            EXPECT_EQ(from_stream->model, "m");
        }
    }
    const auto decoder = make_reply_decoder(Dialect::anthropic, Operation::chat, false);
    const auto from_whole = replay_reply(*decoder, whole, 7);
    ASSERT_TRUE(from_whole) << from_whole.error().message();
    expect_same(*from_whole, response);
    EXPECT_EQ(from_whole->usage, response.usage);
}

TEST(Anthropic, StreamHasTheEventsInTheirOrder) {
    domain::Response response;
    response.text = domain::Content("hi");
    response.tool_calls = {{"t", "f", domain::Content("{}")}};
    response.finish = FinishReason::tool_calls;
    const std::string stream =
        stream_of(Face::anthropic_messages, envelope_of(false), response, 10);
    std::vector<std::string> events;
    for (auto at = stream.find("event: "); at != std::string::npos;
         at = stream.find("event: ", at + 1))
        events.push_back(stream.substr(at + 7, stream.find('\n', at) - at - 7));
    EXPECT_THAT(events, testing::ElementsAre(
                            "message_start", "ping", "content_block_start", "content_block_delta",
                            "content_block_stop", "content_block_start", "content_block_delta",
                            "content_block_stop", "message_delta", "message_stop"));
}

TEST(Anthropic, FailureInAStreamIsAnErrorEvent) {
    const auto encoder = make_stream_encoder(Face::anthropic_messages, envelope_of(false));
    EXPECT_EQ(encoder->failed(Error(ErrorCode::unavailable, "gone")),
              "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\","
              "\"message\":\"gone\"},\"request_id\":\"r1\"}\n\n");
}

constexpr std::string_view start =
    R"(event: message_start
data: {"type":"message_start","message":{"model":"m","usage":{"input_tokens":10,"cache_read_input_tokens":90,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

)";

Result<domain::Response> read_stream(std::string_view tail) {
    const auto decoder = make_reply_decoder(Dialect::anthropic, Operation::chat, true);
    return replay_reply(*decoder, std::string(start) + std::string(tail), 5);
}

TEST(Anthropic, CachedTokensAndEmptyArgumentsAreUnderstood) {
    const auto read = read_stream(
        R"(data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":7}}

data: {"type":"message_stop"}

)");
    ASSERT_TRUE(read) << read.error().message();
    EXPECT_EQ(read->usage.prompt_tokens, 100U);
    EXPECT_EQ(read->usage.cached_tokens, 90U);
    EXPECT_EQ(read->usage.answer_tokens, 7U);
    ASSERT_EQ(read->tool_calls.size(), 1U);
    EXPECT_EQ(read->tool_calls[0].arguments.text(), "{}");
    EXPECT_EQ(read->finish, FinishReason::tool_calls);
}

TEST(Anthropic, StopSequenceIsReadAndTold) {
    const auto read = read_stream(
        R"(data: {"type":"message_delta","delta":{"stop_reason":"stop_sequence","stop_sequence":"END"},"usage":{"output_tokens":7}}

data: {"type":"message_stop"}

)");
    ASSERT_TRUE(read) << read.error().message();
    EXPECT_EQ(read->finish, FinishReason::stop);
    EXPECT_EQ(read->stop_sequence, "END");
    constexpr std::string_view told = R"("stop_reason":"stop_sequence","stop_sequence":"END")";
    EXPECT_THAT(encode_response(Face::anthropic_messages, envelope_of(false), *read),
                HasSubstr(told));
    EXPECT_THAT(stream_of(Face::anthropic_messages, envelope_of(false), *read, 10),
                HasSubstr(told));
}

TEST(Anthropic, StreamThatEndsEarlyFails) {
    for (const std::string_view tail :
         {"", "data: {\"type\":\"error\",\"error\":{\"message\":\"sk-123\"}}\n\n", "data: {\n\n",
          "data: {\"type\":\"content_block_delta\",\"index\":9,\"delta\":{}}\n\n"}) {
        const auto read = read_stream(tail);
        ASSERT_FALSE(read) << tail;
        EXPECT_EQ(read.error().code(), ErrorCode::upstream_failed);
        EXPECT_THAT(read.error().message(), Not(HasSubstr("sk-123")));
    }
}

}  // namespace
}  // namespace molly::dialects
