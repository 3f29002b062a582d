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

constexpr std::string_view everything = R"({
  "model":"llama","messages":[
    {"role":"system","content":"Be brief."},
    {"role":"user","content":"Look 😀","images":["QUJD"]},
    {"role":"assistant","content":"","thinking":"hm","tool_calls":[
      {"function":{"name":"look","arguments":{"a":1}}},
      {"function":{"name":"find","arguments":{}}}]},
    {"role":"tool","tool_name":"find","content":"none"},
    {"role":"tool","tool_name":"look","content":"a cat"}],
  "tools":[{"type":"function","function":{"name":"look","description":"Looks",
    "parameters":{"type":"object"}}}],
  "format":{"type":"object"},"think":"low","keep_alive":"5m","logprobs":true,"top_logprobs":2,
  "options":{"num_predict":20,"temperature":0.5,"top_p":0.25,"top_k":7,"min_p":0.125,"seed":3,
    "stop":["\nUser:"],"repeat_penalty":1.5,"presence_penalty":1,"frequency_penalty":-1,
    "num_ctx":4096},
  "molly":{"class":"secret"}})";

TEST(Ollama, DecodesEveryField) {
    const auto decoded = decode_request(Face::ollama_chat, everything, {});
    ASSERT_TRUE(decoded) << decoded.error().message();
    const domain::Request& request = decoded->request;
    EXPECT_EQ(request.dialect, "ollama");
    EXPECT_TRUE(request.stream);  // unless told otherwise
    ASSERT_EQ(request.messages.size(), 5U);
    EXPECT_EQ(request.messages[1].parts[1].text.text(), "QUJD");
    EXPECT_EQ(request.messages[2].reasoning.text(), "hm");
    ASSERT_EQ(request.messages[2].tool_calls.size(), 2U);
    EXPECT_EQ(request.messages[2].tool_calls[0].arguments.text(), R"({"a":1})");
    EXPECT_EQ(request.messages[3].tool_call_id, request.messages[2].tool_calls[1].id);
    EXPECT_EQ(request.messages[4].tool_call_id, request.messages[2].tool_calls[0].id);
    EXPECT_EQ(request.format.kind, domain::OutputFormat::Kind::json_schema);
    EXPECT_EQ(request.sampling.answer_tokens_max, 20U);
    EXPECT_EQ(request.sampling.min_p, 0.125F);
    EXPECT_EQ(request.sampling.repeat_penalty, 1.5F);
    EXPECT_EQ(request.sampling.stop, std::vector<std::string>{"\nUser:"});
    EXPECT_EQ(request.sampling.reasoning_effort, "low");
    EXPECT_EQ(request.sampling.top_logprobs, 2U);
    EXPECT_FALSE(request.truncate);
    EXPECT_EQ(request.extensions.sensitivity, domain::Sensitivity::secret);
}

TEST(Ollama, UpstreamRequestDecodesToTheSameRequest) {
    const auto decoded = decode_request(Face::ollama_chat, everything, {});
    ASSERT_TRUE(decoded);
    const auto upstream = encode_upstream(Dialect::ollama, decoded->request, "llama2");
    ASSERT_TRUE(upstream) << upstream.error().message();
    EXPECT_EQ(upstream->path, "/api/chat");
    EXPECT_THAT(upstream->body, Not(HasSubstr("molly")));
    const auto again = decode_request(Face::ollama_chat, upstream->body, {});
    ASSERT_TRUE(again) << again.error().message();
    EXPECT_EQ(again->request.model, "llama2");
    EXPECT_EQ(again->request.messages, decoded->request.messages);
    EXPECT_EQ(again->request.tools, decoded->request.tools);
    EXPECT_EQ(again->request.format, decoded->request.format);
    EXPECT_EQ(again->request.sampling, decoded->request.sampling);
    EXPECT_EQ(again->request.stream, decoded->request.stream);
}

TEST(Ollama, GenerateIsAChatUnlessRaw) {
    const auto chat = decode_request(
        Face::ollama_generate,
        R"({"model":"a","system":"s","prompt":"p","images":["QUJD"],"stream":false})", {});
    ASSERT_TRUE(chat);
    EXPECT_EQ(chat->request.operation, Operation::chat);
    EXPECT_FALSE(chat->request.stream);
    ASSERT_EQ(chat->request.messages.size(), 2U);
    EXPECT_EQ(chat->request.messages[1].parts.size(), 2U);

    const auto raw =
        decode_request(Face::ollama_generate, R"({"model":"a","prompt":"p","raw":true})", {});
    ASSERT_TRUE(raw);
    EXPECT_EQ(raw->request.operation, Operation::complete);
    EXPECT_EQ(raw->request.prompt.text(), "p");
    const auto upstream = encode_upstream(Dialect::ollama, raw->request, "b");
    ASSERT_TRUE(upstream);
    EXPECT_EQ(upstream->path, "/api/generate");
    const auto again = decode_request(Face::ollama_generate, upstream->body, {});
    ASSERT_TRUE(again);
    EXPECT_EQ(again->request.prompt, raw->request.prompt);
}

TEST(Ollama, RefusesWhatItCannotDoAndNamesIt) {
    const std::tuple<Face, std::string_view, std::string_view> cases[] = {
        {Face::ollama_generate, R"({"model":"a","prompt":"p","template":"t"})", "template"},
        {Face::ollama_generate, R"({"model":"a","prompt":"p","context":[1]})", "context"},
        {Face::ollama_generate, R"({"model":"a"})", "prompt"},
        {Face::ollama_chat, R"({"model":"a"})", "messages"},
        {Face::ollama_chat, R"({"messages":[{"role":"user","content":"x"}]})", "model"},
        {Face::ollama_chat, R"({"model":"a","messages":[{"role":"user","images":[1]}]})",
         "messages[0].images"},
        {Face::ollama_chat,
         R"({"model":"a","messages":[{"role":"user","content":"x"}],"format":"xml"})", "format"},
        {Face::ollama_chat,
         R"({"model":"a","messages":[{"role":"user","content":"x"}],"options":{"temperature":"x"}})",
         "options.temperature"},
        {Face::ollama_embed, R"({"model":"a"})", "input"},
        {Face::ollama_embed, R"({"model":"a","input":[[1]]})", "input"},
    };
    for (const auto& [face, body, param] : cases) {
        const auto decoded = decode_request(face, body, {});
        ASSERT_FALSE(decoded) << body;
        EXPECT_EQ(decoded.error().param(), param) << body;
    }
}

TEST(Ollama, StreamAndWholeSayTheSameInPiecesOfAnySize) {
    for (const Face face : {Face::ollama_chat, Face::ollama_generate}) {
        domain::Response response = family_answer();
        if (face == Face::ollama_generate) {
            response.tool_calls.clear();
            response.finish = FinishReason::length;
        }
        response.usage.cached_tokens = 0;  // the dialect does not tell
        response.usage.reasoning_tokens = 0;
        for (const std::size_t code_points : {1U, 100U}) {
            const std::string stream = stream_of(face, envelope_of(false), response, code_points);
            EXPECT_TRUE(utf8_valid(stream));
            for (const std::size_t piece : {1U, 1000U}) {
                const auto decoder = make_reply_decoder(Dialect::ollama, Operation::chat, true);
                const auto read = replay_reply(*decoder, stream, piece);
                ASSERT_TRUE(read) << read.error().message();
                expect_same(*read, response);
                EXPECT_EQ(read->usage, response.usage);
                EXPECT_EQ(read->model, "m");
            }
        }
        const auto decoder = make_reply_decoder(Dialect::ollama, Operation::chat, false);
        const auto read =
            replay_reply(*decoder, encode_response(face, envelope_of(false), response), 7);
        ASSERT_TRUE(read) << read.error().message();
        expect_same(*read, response);
    }
}

TEST(Ollama, LastLineHasCountsAndTimes) {
    domain::Response response;
    response.usage.prompt_tokens = 3;
    response.usage.answer_tokens = 4;
    response.first_token = std::chrono::milliseconds(2);
    response.duration = std::chrono::milliseconds(5);
    Envelope envelope = envelope_of(false);
    envelope.created = WallTime(std::chrono::microseconds(1'700'000'000'000'001));
    EXPECT_EQ(make_stream_encoder(Face::ollama_chat, envelope)->end(response),
              R"({"model":"m","created_at":"2023-11-14T22:13:20.000001Z",)"
              R"("message":{"role":"assistant","content":""},"done":true,"done_reason":"stop",)"
              R"("total_duration":5000000,"load_duration":0,"prompt_eval_count":3,)"
              R"("prompt_eval_duration":2000000,"eval_count":4,"eval_duration":3000000})"
              "\n");
    EXPECT_EQ(make_stream_encoder(Face::ollama_chat, envelope)
                  ->failed(Error(ErrorCode::upstream_failed, "gone")),
              "{\"error\":\"gone\"}\n");
    EXPECT_EQ(stream_media_type(Face::ollama_chat), "application/x-ndjson");
}

TEST(Ollama, StreamThatEndsEarlyFails) {
    constexpr std::string_view begin = R"({"model":"m","message":{"content":"Hel"},"done":false})"
                                       "\n";
    for (const std::string_view tail : {"", "{\"error\":\"sk-123\"}\n", "{\"message\"", "[]\n"}) {
        const auto decoder = make_reply_decoder(Dialect::ollama, Operation::chat, true);
        const auto read = replay_reply(*decoder, std::string(begin) + std::string(tail), 3);
        ASSERT_FALSE(read) << tail;
        EXPECT_EQ(read.error().code(), ErrorCode::upstream_failed);
        EXPECT_THAT(read.error().message(), Not(HasSubstr("sk-123")));
    }
}

TEST(Ollama, CallsWithoutIdsGetStableOnes) {
    constexpr std::string_view reply =
        R"({"model":"m","message":{"content":"","tool_calls":[{"function":{"name":"f","arguments":{"a":1}}},{"function":{"name":"f","arguments":{"a":1}}}]},"done":true,"done_reason":"stop"})";
    const auto read = [&reply] {
        const auto decoder = make_reply_decoder(Dialect::ollama, Operation::chat, true);
        return replay_reply(*decoder, reply, 11);
    };
    const auto first = read();
    ASSERT_TRUE(first);
    ASSERT_EQ(first->tool_calls.size(), 2U);
    EXPECT_NE(first->tool_calls[0].id, first->tool_calls[1].id);
    EXPECT_EQ(first->tool_calls, read()->tool_calls);
    EXPECT_EQ(first->finish, FinishReason::tool_calls);
}

TEST(Ollama, EmbeddingsGoBothWays) {
    const auto several =
        decode_request(Face::ollama_embed, R"({"model":"a","input":["x","y"]})", {});
    ASSERT_TRUE(several);
    EXPECT_EQ(several->request.inputs.size(), 2U);
    EXPECT_TRUE(several->request.truncate);
    EXPECT_FALSE(several->legacy_embeddings);
    domain::Response response;
    response.embeddings = {{0.5F, -1.25F}, {3e-9F, 1.0F}};
    response.usage.prompt_tokens = 6;
    const std::string body = encode_response(Face::ollama_embed, envelope_of(false), response);
    const auto decoder = make_reply_decoder(Dialect::ollama, Operation::embed, false);
    const auto read = replay_reply(*decoder, body, 5);
    ASSERT_TRUE(read) << read.error().message();
    EXPECT_EQ(read->embeddings, response.embeddings);
    EXPECT_EQ(read->usage.prompt_tokens, 6U);

    const auto older = decode_request(Face::ollama_embed, R"({"model":"a","prompt":"x"})", {});
    ASSERT_TRUE(older);
    EXPECT_TRUE(older->legacy_embeddings);
    Envelope envelope = envelope_of(false);
    envelope.legacy_embeddings = true;
    EXPECT_EQ(encode_response(Face::ollama_embed, envelope, response),
              R"({"embedding":[0.5,-1.25]})");
}

}  // namespace
}  // namespace molly::dialects
