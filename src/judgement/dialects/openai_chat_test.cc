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

Result<Decoded> decode(std::string_view body) {
    return decode_request(Face::openai_chat, body, {});
}

constexpr std::string_view everything = R"({
  "model":"auto","stream":true,"stream_options":{"include_usage":true},
  "messages":[
    {"role":"developer","content":"Be brief."},
    {"role":"user","name":"ada","content":[
      {"type":"text","text":"What is it? \u00e8 😀"},
      {"type":"image_url","image_url":{"url":"data:image/png;base64,QUJD"}},
      {"type":"image_url","image_url":{"url":"https://example.org/a.png"}},
      {"type":"input_audio","input_audio":{"data":"QUJD","format":"wav"}},
      {"type":"file","file":{"file_data":"data:application/pdf;base64,QUJD"}}]},
    {"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":[
      {"id":"call_1","type":"function","function":{"name":"look","arguments":"{\"a\":1}"}}]},
    {"role":"tool","tool_call_id":"call_1","content":"a cat"}],
  "tools":[{"type":"function","function":{"name":"look","description":"Looks",
    "parameters":{"type":"object","properties":{"a":{"type":"number","minimum":0.5}}},
    "strict":true}}],
  "tool_choice":{"type":"function","function":{"name":"look"}},"parallel_tool_calls":false,
  "response_format":{"type":"json_schema","json_schema":{"name":"out","strict":true,
    "schema":{"type":"object"}}},
  "temperature":0.5,"top_p":0.25,"frequency_penalty":-1,"presence_penalty":1.5,"seed":-7,
  "stop":["\nUser:","😀"],"logprobs":true,"top_logprobs":3,"max_tokens":10,
  "max_completion_tokens":20,"reasoning_effort":"low","metadata":{"k":"v"},"user":"u1",
  "unknown_field":{"x":[1]}})";

TEST(OpenAiChat, DecodesEveryField) {
    const auto decoded = decode(everything);
    ASSERT_TRUE(decoded) << decoded.error().message();
    const domain::Request& request = decoded->request;
    EXPECT_EQ(request.operation, Operation::chat);
    EXPECT_EQ(request.dialect, "openai");
    EXPECT_EQ(request.model, "auto");
    EXPECT_TRUE(request.stream);
    EXPECT_TRUE(decoded->usage_in_stream);
    ASSERT_EQ(request.messages.size(), 4U);
    EXPECT_EQ(request.messages[0].role, Role::system);
    ASSERT_EQ(request.messages[1].parts.size(), 5U);
    EXPECT_EQ(request.messages[1].name, "ada");
    EXPECT_EQ(request.messages[1].parts[0].text.text(), "What is it? è 😀");
    EXPECT_EQ(request.messages[1].parts[1].media_type, "image/png");
    EXPECT_EQ(request.messages[1].parts[1].text.text(), "QUJD");
    EXPECT_TRUE(request.messages[1].parts[2].is_url);
    EXPECT_EQ(request.messages[1].parts[3].media_type, "audio/wav");
    EXPECT_EQ(request.messages[1].parts[4].media_type, "application/pdf");
    EXPECT_EQ(request.messages[2].reasoning.text(), "hm");
    ASSERT_EQ(request.messages[2].tool_calls.size(), 1U);
    EXPECT_EQ(request.messages[2].tool_calls[0].arguments.text(), R"({"a":1})");
    EXPECT_EQ(request.messages[3].tool_call_id, "call_1");
    ASSERT_EQ(request.tools.size(), 1U);
    EXPECT_THAT(request.tools[0].parameters.text(), HasSubstr(R"("minimum":0.5)"));
    EXPECT_TRUE(request.tools[0].strict);
    EXPECT_EQ(request.tool_choice.kind, domain::ToolChoice::Kind::named);
    EXPECT_EQ(request.tool_choice.name, "look");
    EXPECT_FALSE(request.tool_choice.parallel);
    EXPECT_EQ(request.format.kind, domain::OutputFormat::Kind::json_schema);
    EXPECT_EQ(request.format.schema.text(), R"({"type":"object"})");
    EXPECT_EQ(request.sampling.answer_tokens_max, 20U);
    EXPECT_EQ(request.sampling.seed, static_cast<std::uint64_t>(-7));
    EXPECT_EQ(request.sampling.stop, (std::vector<std::string>{"\nUser:", "😀"}));
    EXPECT_EQ(request.sampling.top_logprobs, 3U);
    EXPECT_EQ(request.sampling.reasoning_effort, "low");
    EXPECT_EQ(request.metadata.at("k"), "v");
}

TEST(OpenAiChat, UpstreamRequestDecodesToTheSameRequest) {
    const auto decoded = decode(everything);
    ASSERT_TRUE(decoded);
    const auto upstream = encode_upstream(Dialect::openai, decoded->request, "gpt-x");
    ASSERT_TRUE(upstream) << upstream.error().message();
    EXPECT_EQ(upstream->path, "/chat/completions");
    EXPECT_THAT(upstream->body, testing::Not(HasSubstr("molly")));
    const auto again = decode(upstream->body);
    ASSERT_TRUE(again) << again.error().message();
    EXPECT_EQ(again->request.model, "gpt-x");
    EXPECT_TRUE(again->usage_in_stream);
    EXPECT_EQ(again->request.messages, decoded->request.messages);
    EXPECT_EQ(again->request.tools, decoded->request.tools);
    EXPECT_EQ(again->request.tool_choice, decoded->request.tool_choice);
    EXPECT_EQ(again->request.format, decoded->request.format);
    EXPECT_EQ(again->request.sampling, decoded->request.sampling);
    EXPECT_EQ(again->request.stream, decoded->request.stream);
}

TEST(OpenAiChat, DecodesTheMollyObject) {
    const auto decoded = decode(R"({"model":"a","messages":[{"role":"user","content":"x"}],
      "molly":{"class":"secret","residency":["EU","home-lan"],"mode":"fast","max_cost":0.25,
      "max_latency_ms":900,"adapter":"law","explain":true,"conversation":"c1","purpose":"mail",
      "tags":["hr"],"keep_prefix":"system"}})");
    ASSERT_TRUE(decoded) << decoded.error().message();
    const domain::Extensions& extensions = decoded->request.extensions;
    EXPECT_EQ(extensions.sensitivity, domain::Sensitivity::secret);
    EXPECT_EQ(to_string(*extensions.residency), "EU home-lan");
    EXPECT_EQ(extensions.mode, domain::Mode::fast);
    EXPECT_EQ(extensions.cost_max->nano, 250'000'000);
    EXPECT_EQ(extensions.latency_max->count(), 900);
    EXPECT_EQ(extensions.adapter, "law");
    EXPECT_TRUE(extensions.explain);
    EXPECT_EQ(extensions.conversation, "c1");
    EXPECT_EQ(extensions.purpose, "mail");
    EXPECT_EQ(extensions.tags, std::vector<std::string>{"hr"});
    EXPECT_EQ(extensions.keep_prefix, domain::KeepPrefix::system);
    const auto refused = decode(R"({"model":"a","messages":[{"role":"user","content":"x"}],
      "molly":{"keep_prefix":"all"}})");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().param(), "molly.keep_prefix");
}

TEST(OpenAiChat, SeveralAdaptersAreOneNameInside) {
    const auto decoded = decode(R"({"model":"a","messages":[{"role":"user","content":"x"}],
      "molly":{"adapters":[{"name":"law","scale":0.5},{"name":"style@2.0.0"}]}})");
    ASSERT_TRUE(decoded) << decoded.error().message();
    EXPECT_EQ(decoded->request.extensions.adapter, "law*0.5,style@2.0.0");
    for (const char* wrong :
         {R"([{"name":"a,b"}])", R"([{"name":"a*2"}])", R"([{"scale":1}])", R"(["law"])",
          R"([{"name":"law","scale":99}])", R"([{"name":"law","scale":"1"}])", R"("law")"}) {
        const auto refused = decode(
            std::string(R"({"model":"a","messages":[{"role":"user","content":"x"}],"molly":{)") +
            R"("adapters":)" + wrong + "}}");
        ASSERT_FALSE(refused) << wrong;
        EXPECT_EQ(refused.error().code(), ErrorCode::invalid_request) << wrong;
    }
}

struct Refused {
    std::string_view fields;  // after model and messages
    ErrorCode code;
    std::string_view param;
};

TEST(OpenAiChat, RefusesWhatItCannotDoAndNamesIt) {
    const Refused cases[] = {
        {R"("n":2)", ErrorCode::unsupported, "n"},
        {R"("functions":[])", ErrorCode::unsupported, "functions"},
        {R"("function_call":"auto")", ErrorCode::unsupported, "function_call"},
        {R"("modalities":["text","audio"])", ErrorCode::unsupported, "modalities"},
        {R"("logit_bias":{"5":1})", ErrorCode::unsupported, "logit_bias"},
        {R"("tools":[{"type":"web_search"}])", ErrorCode::unsupported, "tools[0].type"},
        {R"("tools":[{"type":"function","function":{"name":""}}])", ErrorCode::invalid_request,
         "tools[0].function.name"},
        {R"("temperature":3)", ErrorCode::invalid_request, "temperature"},
        {R"("temperature":"hot")", ErrorCode::invalid_request, "temperature"},
        {R"("max_tokens":0)", ErrorCode::invalid_request, "max_tokens"},
        {R"("max_tokens":1.5)", ErrorCode::invalid_request, "max_tokens"},
        {R"("top_logprobs":2)", ErrorCode::invalid_request, "top_logprobs"},
        {R"("stop":7)", ErrorCode::invalid_request, "stop"},
        {R"("stream":1)", ErrorCode::invalid_request, "stream"},
        {R"("tool_choice":"maybe")", ErrorCode::invalid_request, "tool_choice"},
        {R"("response_format":{"type":"xml"})", ErrorCode::unsupported, "response_format.type"},
        {R"("response_format":{"type":"json_schema"})", ErrorCode::invalid_request,
         "response_format.json_schema"},
        {R"("molly":{"clas":"secret"})", ErrorCode::invalid_request, "molly.clas"},
        {R"("molly":{"class":"top"})", ErrorCode::invalid_request, "molly.class"},
        {R"("model":"b")", ErrorCode::invalid_request, ""},  // a repeated key (case 10)
    };
    for (const Refused& refused : cases) {
        std::string body = R"({"model":"a","messages":[{"role":"user","content":"x"}],)";
        body += refused.fields;
        body += '}';
        const auto decoded = decode(body);
        ASSERT_FALSE(decoded) << refused.fields;
        EXPECT_EQ(decoded.error().code(), refused.code) << refused.fields;
        EXPECT_EQ(decoded.error().param(), refused.param) << refused.fields;
    }
}

TEST(OpenAiChat, RefusesBadMessages) {
    const std::pair<std::string_view, std::string_view> cases[] = {
        {R"([])", "messages"},
        {R"({})", "messages"},
        {R"(["x"])", "messages[0]"},
        {R"([{"content":"x"}])", "messages[0].role"},
        {R"([{"role":"wizard","content":"x"}])", "messages[0].role"},
        {R"([{"role":"function","name":"f","content":"x"}])", "messages[0].role"},
        {R"([{"role":"user"}])", "messages[0].content"},
        {R"([{"role":"tool","content":"x"}])", "messages[0].tool_call_id"},
        {R"([{"role":"user","content":[{"type":"video"}]}])", "messages[0].content[0].type"},
        {R"([{"role":"user","content":[{"type":"text","text":3}]}])",
         "messages[0].content[0].text"},
        {R"([{"role":"assistant","tool_calls":[{"id":"a"}]}])",
         "messages[0].tool_calls[0].function"},
    };
    for (const auto& [messages, param] : cases) {
        const auto decoded = decode(R"({"model":"a","messages":)" + std::string(messages) + "}");
        ASSERT_FALSE(decoded) << messages;
        EXPECT_EQ(decoded.error().param(), param) << messages;
        EXPECT_THAT(decoded.error().message(), HasSubstr(param)) << messages;
    }
}

TEST(OpenAiChat, StreamAndWholeSayTheSameInPiecesOfAnySize) {
    const domain::Response response = family_answer();
    const std::string whole = encode_response(Face::openai_chat, envelope_of(false), response);
    for (const std::size_t code_points : {1U, 2U, 100U}) {
        const std::string stream =
            stream_of(Face::openai_chat, envelope_of(true), response, code_points);
        EXPECT_TRUE(utf8_valid(stream));
        for (const std::size_t piece : {1U, 3U, 1000U}) {
            const auto streamed = make_reply_decoder(Dialect::openai, Operation::chat, true);
            const auto from_stream = replay_reply(*streamed, stream, piece);
            ASSERT_TRUE(from_stream) << from_stream.error().message();
            expect_same(*from_stream, response);
            EXPECT_EQ(from_stream->usage, response.usage);
            EXPECT_EQ(from_stream->model, "m");
        }
    }
    const auto decoder = make_reply_decoder(Dialect::openai, Operation::chat, false);
    const auto from_whole = replay_reply(*decoder, whole, 7);
    ASSERT_TRUE(from_whole) << from_whole.error().message();
    expect_same(*from_whole, response);
    EXPECT_EQ(from_whole->usage, response.usage);
}

TEST(OpenAiChat, LogprobsKeepTheBytesOfHalfACodePoint) {
    domain::Response response;
    response.text = domain::Content("😀");
    response.logprobs = {{"\xF0\x9F", -0.5F, {{"\xF0\x9F", -0.5F}, {"a", -2.0F}}},
                         {"\x98\x80", -0.25F, {}}};
    const std::string whole = encode_response(Face::openai_chat, envelope_of(false), response);
    EXPECT_TRUE(utf8_valid(whole));
    const auto decoder = make_reply_decoder(Dialect::openai, Operation::chat, false);
    const auto read = replay_reply(*decoder, whole, 1000);
    ASSERT_TRUE(read);
    expect_same(*read, response);
}

TEST(OpenAiChat, WholeAnswerHasEveryRequiredField) {
    domain::Response response;
    response.text = domain::Content("hi");
    Envelope envelope = envelope_of(false);
    envelope.caveat = "small model";
    envelope.decision = R"({"rule":"r"})";
    const auto value = parse_json(encode_response(Face::openai_chat, envelope, response));
    ASSERT_TRUE(value);
    EXPECT_EQ(to_text(*value),
              R"({"id":"chatcmpl-r1","object":"chat.completion","created":0,"model":"m",)"
              R"("choices":[{"index":0,"message":{"role":"assistant","content":"hi",)"
              R"("refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"stop"}],)"
              R"("usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0,)"
              R"("prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},)"
              R"("completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,)"
              R"("accepted_prediction_tokens":0,"rejected_prediction_tokens":0}},)"
              R"("molly":{"caveat":"small model","explain":{"rule":"r"}}})");
}

std::size_t count(std::string_view text, std::string_view part) {
    std::size_t times = 0;
    for (auto at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1))
        ++times;
    return times;
}

// Case 5.
TEST(OpenAiChat, UsageChunkHasNoChoicesAndComesOnlyWhenAsked) {
    const domain::Response response = family_answer();
    const std::string asked = stream_of(Face::openai_chat, envelope_of(true), response, 4);
    EXPECT_EQ(count(asked, R"("choices":[],"usage":{)"), 1U);
    EXPECT_EQ(count(asked, "data: {"), count(asked, R"("usage":null)") + 1);
    EXPECT_TRUE(asked.ends_with("data: [DONE]\n\n"));
    EXPECT_LT(asked.find(R"("choices":[],"usage":{)"), asked.find("data: [DONE]"));
    const std::string silent = stream_of(Face::openai_chat, envelope_of(false), response, 4);
    EXPECT_EQ(count(silent, "usage"), 0U);
}

// Case 4, going out.
TEST(OpenAiChat, FailureInAStreamIsAFrameAndAProperEnd) {
    const auto encoder = make_stream_encoder(Face::openai_chat, envelope_of(false));
    EXPECT_EQ(
        encoder->failed(Error(ErrorCode::upstream_failed, "gone").reason("upstream_incomplete")),
        "data: {\"error\":{\"message\":\"gone\",\"type\":\"server_error\",\"param\":null,"
        "\"code\":\"upstream_incomplete\"}}\n\ndata: [DONE]\n\n");
    EXPECT_TRUE(encoder->keep_alive().starts_with(":"));
}

constexpr std::string_view hello =
    R"(data: {"model":"m","choices":[{"index":0,"delta":{"content":"Hel"}}]}

data: {"choices":[{"index":0,"delta":{"content":"lo"}}]}

)";

Result<domain::Response> read_stream(std::string_view tail, std::size_t piece = 5) {
    const auto decoder = make_reply_decoder(Dialect::openai, Operation::chat, true);
    return replay_reply(*decoder, std::string(hello) + std::string(tail), piece);
}

// Case 4, coming in.
TEST(OpenAiChat, StreamThatEndsEarlyFails) {
    const std::string_view tails[] = {
        "",
        "data: {\"choices\":[",
        "data: {\"choices\":[{\"delta\":{}]}\n\n",
        "data: {\"error\":{\"message\":\"sk-123\"}}\n\ndata: [DONE]\n\n",
        "data: nonsense\n\n",
    };
    for (const std::string_view tail : tails) {
        const auto read = read_stream(tail);
        ASSERT_FALSE(read) << tail;
        EXPECT_EQ(read.error().code(), ErrorCode::upstream_failed);
        EXPECT_THAT(read.error().message(), testing::Not(HasSubstr("sk-123")));
    }
}

TEST(OpenAiChat, StreamWithoutDoneIsCompleteWhenItFinished) {
    constexpr std::string_view finish =
        R"(data: {"choices":[{"delta":{},"finish_reason":"length"}]})";
    for (const std::string_view end : {"\n\n", "\n", "", "\r\n\r\n", "\r\r"}) {
        for (const std::size_t piece : {1U, 5U, 4096U}) {
            const auto read = read_stream(std::string(finish) + std::string(end), piece);
            ASSERT_TRUE(read) << read.error().message();
            EXPECT_EQ(read->text.text(), "Hello");
            EXPECT_EQ(read->finish, FinishReason::length);
        }
    }
}

// Case 6.
TEST(OpenAiChat, UsageCountsInAnyChunkAndTheLastWins) {
    const auto read = read_stream(
        R"(data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}

data: {"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":1000,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":900}}}

data: {"choices":[{"delta":{}}]}

data: [DONE]

)");
    ASSERT_TRUE(read);
    EXPECT_EQ(read->usage.prompt_tokens, 1000U);
    EXPECT_EQ(read->usage.cached_tokens, 900U);
    EXPECT_EQ(read->usage.answer_tokens, 7U);
    EXPECT_EQ(read->usage.source, domain::Usage::Source::upstream);
    const domain::Prices prices = {
        .per_input_token = {10}, .per_cached_token = {1}, .per_answer_token = {0}};
    EXPECT_EQ(cost_of(read->usage, prices).nano, 100 * 10 + 900 * 1);
}

TEST(OpenAiChat, CommentsAndForeignFieldsAreIgnored) {
    const auto read = read_stream(
        ": ping\n\nevent: x\nid: 7\nretry: 3\n\ndata:{\"choices\":[{\"delta\":{},\n"
        "data: \"finish_reason\":\"stop\"}]}\n\n",
        1);
    ASSERT_TRUE(read) << read.error().message();
    EXPECT_EQ(read->text.text(), "Hello");
}

TEST(OpenAiChat, LineWithoutEndIsRefused) {
    const auto decoder = make_reply_decoder(Dialect::openai, Operation::chat, true);
    const std::string block(1U << 20U, 'x');
    Result<std::vector<domain::Delta>> last;
    for (int i = 0; i < 9 && last; ++i)
        last = decoder->piece(block);
    ASSERT_FALSE(last);
    EXPECT_EQ(last.error().reason(), "upstream_line_too_long");
}

}  // namespace
}  // namespace molly::dialects
