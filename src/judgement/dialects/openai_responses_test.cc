#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dialects/dialects.h"
#include "dialects/internal/answers_for_tests.h"
#include "dialects/internal/replay.h"
#include "dialects/internal/sse.h"

namespace molly::dialects {
namespace {

using domain::Role;
using testing::ElementsAre;

Result<Decoded> decode(std::string_view body) {
    return decode_request(Face::openai_responses, body, {});
}

TEST(OpenAiResponses, DecodesEveryField) {
    const auto decoded = decode(R"({
      "model":"auto","instructions":"Be brief.","previous_response_id":"resp_0","store":false,
      "input":[
        {"role":"developer","content":"dev"},
        {"type":"message","role":"user","content":[{"type":"input_text","text":"Look"},
          {"type":"input_image","image_url":"data:image/png;base64,QUJD","detail":"auto"},
          {"type":"input_file","file_url":"https://example.org/a.pdf"}]},
        {"type":"reasoning","id":"rs","summary":[{"type":"summary_text","text":"hm"}]},
        {"type":"message","role":"assistant","content":[{"type":"output_text","text":"I look."}]},
        {"type":"function_call","call_id":"c1","name":"look","arguments":"{}"},
        {"type":"function_call","call_id":"c2","name":"find","arguments":"{}"},
        {"type":"function_call_output","call_id":"c1","output":"a cat"},
        {"type":"function_call_output","call_id":"c2",
         "output":[{"type":"input_text","text":"none"}]}],
      "tools":[{"type":"function","name":"look","description":"Looks","strict":false,
                "parameters":{"type":"object"}},
               {"type":"namespace","name":"n","tools":[]},{"type":"web_search"}],
      "tool_choice":{"type":"function","name":"look"},"parallel_tool_calls":false,
      "text":{"format":{"type":"json_schema","name":"out","schema":{"type":"object"},
              "strict":true},"verbosity":"low"},
      "reasoning":{"effort":"high","summary":"auto"},"max_output_tokens":50,"temperature":0.5,
      "top_logprobs":2,"include":["reasoning.encrypted_content"],"truncation":"auto",
      "metadata":{"k":"v"},"prompt_cache_key":"x","client_metadata":{"a":"b"},"stream":true})");
    ASSERT_TRUE(decoded) << decoded.error().message();
    const domain::Request& request = decoded->request;
    EXPECT_EQ(decoded->previous_response_id, "resp_0");
    EXPECT_EQ(decoded->instructions, "Be brief.");
    EXPECT_FALSE(decoded->store);
    ASSERT_EQ(request.messages.size(), 6U);
    EXPECT_EQ(request.messages[0].role, Role::system);
    EXPECT_EQ(request.messages[1].role, Role::system);
    EXPECT_EQ(request.messages[2].parts.size(), 3U);
    EXPECT_EQ(request.messages[3].role, Role::assistant);
    EXPECT_EQ(request.messages[3].reasoning.text(), "hm");
    EXPECT_EQ(request.messages[3].tool_calls.size(), 2U);
    EXPECT_EQ(request.messages[4].tool_call_id, "c1");
    EXPECT_EQ(text_of(request.messages[5]), "none");
    ASSERT_EQ(request.tools.size(), 1U);
    EXPECT_EQ(request.tool_choice.name, "look");
    EXPECT_FALSE(request.tool_choice.parallel);
    EXPECT_EQ(request.format.name, "out");
    EXPECT_EQ(request.sampling.reasoning_effort, "high");
    EXPECT_EQ(request.sampling.answer_tokens_max, 50U);
    EXPECT_TRUE(request.sampling.logprobs);
    EXPECT_TRUE(request.truncate);
    EXPECT_TRUE(request.stream);
}

TEST(OpenAiResponses, RefusesWhatItCannotDoAndNamesIt) {
    const std::pair<std::string_view, std::string_view> cases[] = {
        {R"({"model":"a"})", "input"},
        {R"({"model":"a","input":[]})", "input"},
        {R"({"model":"a","input":[{"type":"item_reference","id":"x"}]})", "input[0].type"},
        {R"({"model":"a","input":[{"role":"user","content":[{"type":"input_image","file_id":"f"}]}]})",
         "input[0].content[0].file_id"},
        {R"({"model":"a","input":"x","background":true})", "background"},
        {R"({"model":"a","input":"x","conversation":"c"})", "conversation"},
        {R"({"model":"a","input":"x","tools":[{"type":"file_search"}]})", "tools[0].type"},
        {R"({"model":"a","input":"x","tools":[{"type":"mcp"}]})", "tools[0].type"},
        {R"({"model":"a","input":"x","tool_choice":{"type":"allowed_tools"}})", "tool_choice.type"},
        {R"({"model":"a","input":"x","text":{"format":{"type":"json_schema"}}})",
         "text.format.schema"},
    };
    for (const auto& [body, param] : cases) {
        const auto decoded = decode(body);
        ASSERT_FALSE(decoded) << body;
        EXPECT_EQ(decoded.error().param(), param) << body;
    }
}

struct Event {
    std::string name;
    json::object data;
};

std::vector<Event> events_of(std::string_view stream) {
    std::vector<Event> events;
    SseReader reader;
    const auto read = reader.piece(stream, [&events](const SseEvent& event) -> Result<void> {
        TRY(json::value value, parse_json(event.data));
        events.push_back({std::string(event.name), value.as_object()});
        return {};
    });
    EXPECT_TRUE(read) << read.error().message();
    return events;
}

std::string text(const json::value& value) {
    return std::string(std::string_view(value.as_string()));
}

TEST(OpenAiResponses, StreamHasTheTypedEventsInTheirOrder) {
    domain::Response response;
    response.reasoning = domain::Content("hm");
    response.text = domain::Content("hi");
    response.tool_calls = {{"c1", "f", domain::Content("{}")}};
    response.finish = domain::FinishReason::tool_calls;
    const auto events =
        events_of(stream_of(Face::openai_responses, envelope_of(false), response, 10));
    std::vector<std::string> names;
    for (std::size_t i = 0; i < events.size(); ++i) {
        names.push_back(events[i].name);
        EXPECT_EQ(text(events[i].data.at("type")), events[i].name);
        EXPECT_EQ(events[i].data.at("sequence_number"), i);
    }
    const std::vector<std::string> wanted = {"response.created",
                                             "response.in_progress",
                                             "response.output_item.added",
                                             "response.content_part.added",
                                             "response.reasoning_text.delta",
                                             "response.reasoning_text.done",
                                             "response.content_part.done",
                                             "response.output_item.done",
                                             "response.output_item.added",
                                             "response.content_part.added",
                                             "response.output_text.delta",
                                             "response.output_item.added",
                                             "response.function_call_arguments.delta",
                                             "response.output_text.done",
                                             "response.content_part.done",
                                             "response.output_item.done",
                                             "response.function_call_arguments.done",
                                             "response.output_item.done",
                                             "response.completed"};
    EXPECT_EQ(names, wanted);
}

// The last event repeats the whole answer, and the deltas add up to it.
TEST(OpenAiResponses, StreamAndWholeSayTheSame) {
    const domain::Response response = family_answer();
    const auto whole =
        parse_json(encode_response(Face::openai_responses, envelope_of(false), response));
    ASSERT_TRUE(whole) << whole.error().message();
    for (const std::size_t code_points : {1U, 100U}) {
        const std::string stream =
            stream_of(Face::openai_responses, envelope_of(false), response, code_points);
        EXPECT_TRUE(utf8_valid(stream));
        const auto events = events_of(stream);
        EXPECT_EQ(to_text(events.back().data.at("response")), to_text(*whole));
        std::string sum;
        for (const Event& event : events) {
            if (event.name == "response.output_text.delta") sum += text(event.data.at("delta"));
        }
        EXPECT_EQ(sum, response.text.text());
    }
}

TEST(OpenAiResponses, AnswerCanComeBackAsInput) {
    const domain::Response response = family_answer();
    auto whole = parse_json(encode_response(Face::openai_responses, envelope_of(false), response));
    ASSERT_TRUE(whole);
    json::object body;
    body["input"] = whole->as_object().at("output");
    const auto decoded = decode(to_text(body));
    ASSERT_TRUE(decoded) << decoded.error().message();
    ASSERT_EQ(decoded->request.messages.size(), 1U);
    const domain::Message& message = decoded->request.messages[0];
    EXPECT_EQ(text_of(message), response.text.text());
    EXPECT_EQ(message.reasoning, response.reasoning);
    EXPECT_EQ(message.tool_calls, response.tool_calls);
}

TEST(OpenAiResponses, WholeAnswerHasEveryRequiredField) {
    const auto decoded = decode(R"({"model":"a","input":"x","instructions":"i","temperature":0.5,
      "tools":[{"type":"function","name":"f","parameters":{"type":"object"},"strict":true}],
      "metadata":{"a\"b":"v"},"max_output_tokens":9})");
    ASSERT_TRUE(decoded);
    Envelope envelope = envelope_of(false);
    envelope.request = &decoded->request;
    envelope.instructions = decoded->instructions;
    domain::Response response;
    response.text = domain::Content("hi");
    response.finish = domain::FinishReason::length;
    EXPECT_EQ(
        encode_response(Face::openai_responses, envelope, response),
        R"({"id":"resp_r1","object":"response","created_at":0,"status":"incomplete",)"
        R"("error":null,"incomplete_details":{"reason":"max_output_tokens"},"model":"m",)"
        R"("output":[{"id":"msg_r1","type":"message","role":"assistant","content":[)"
        R"({"type":"output_text","text":"hi","annotations":[],"logprobs":[]}],)"
        R"("status":"completed"}],"instructions":"i","tools":[{"type":"function","name":"f",)"
        R"("description":null,"parameters":{"type":"object"},"strict":true}],)"
        R"("parallel_tool_calls":true,"tool_choice":"auto","text":{"format":{"type":"text"}},)"
        R"("temperature":0.5,"top_p":null,"max_output_tokens":9,)"
        R"("reasoning":{"effort":null,"summary":null},"previous_response_id":null,)"
        R"("store":true,"background":false,"truncation":"disabled","metadata":{"a\"b":"v"},)"
        R"("usage":{"input_tokens":0,"input_tokens_details":{"cached_tokens":0,)"
        R"("cache_write_tokens":0},"output_tokens":0,)"
        R"("output_tokens_details":{"reasoning_tokens":0},"total_tokens":0}})");
}

TEST(OpenAiResponses, FailureAndCutAreEventsOfTheirOwn) {
    const auto encoder = make_stream_encoder(Face::openai_responses, envelope_of(false));
    encoder->begin();
    const auto failed = events_of(encoder->failed(Error(ErrorCode::upstream_failed, "gone")));
    ASSERT_EQ(failed.size(), 1U);
    EXPECT_EQ(failed[0].name, "response.failed");
    const json::object& response = failed[0].data.at("response").as_object();
    EXPECT_EQ(text(response.at("status")), "failed");
    EXPECT_EQ(to_text(response.at("error")), R"({"code":"server_error","message":"gone"})");

    domain::Response cut;
    cut.finish = domain::FinishReason::length;
    const auto events = events_of(stream_of(Face::openai_responses, envelope_of(false), cut, 1));
    EXPECT_EQ(events.back().name, "response.incomplete");
}

}  // namespace
}  // namespace molly::dialects
