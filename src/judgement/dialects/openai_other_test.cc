// The completions and embeddings faces.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dialects/dialects.h"
#include "dialects/internal/answers_for_tests.h"
#include "dialects/internal/replay.h"

namespace molly::dialects {
namespace {

using domain::Dialect;
using domain::Operation;
using testing::HasSubstr;

TEST(OpenAiCompletions, DecodesAndEncodesUpstream) {
    const auto decoded = decode_request(
        Face::openai_completions,
        R"({"model":"a","prompt":["Once"],"suffix":"end","logprobs":2,"stop":"x","stream":true,
            "stream_options":{"include_usage":true}})",
        {});
    ASSERT_TRUE(decoded) << decoded.error().message();
    EXPECT_EQ(decoded->request.operation, Operation::complete);
    EXPECT_EQ(decoded->request.prompt.text(), "Once");
    EXPECT_EQ(decoded->request.sampling.answer_tokens_max, 16U);
    EXPECT_EQ(decoded->request.sampling.top_logprobs, 2U);
    const auto upstream = encode_upstream(Dialect::openai, decoded->request, "b");
    ASSERT_TRUE(upstream);
    EXPECT_EQ(upstream->path, "/completions");
    const auto again = decode_request(Face::openai_completions, upstream->body, {});
    ASSERT_TRUE(again) << again.error().message();
    EXPECT_EQ(again->request.prompt, decoded->request.prompt);
    EXPECT_EQ(again->request.suffix, decoded->request.suffix);
    EXPECT_EQ(again->request.sampling, decoded->request.sampling);
}

TEST(OpenAiCompletions, RefusesWhatItCannotDoAndNamesIt) {
    const std::pair<std::string_view, std::string_view> cases[] = {
        {R"({"model":"a"})", "prompt"},
        {R"({"model":"a","prompt":[1,2]})", "prompt"},
        {R"({"model":"a","prompt":["x","y"]})", "prompt"},
        {R"({"model":"a","prompt":"x","best_of":2})", "best_of"},
        {R"({"model":"a","prompt":"x","echo":true,"logprobs":1})", "logprobs"},
    };
    for (const auto& [body, param] : cases) {
        const auto decoded = decode_request(Face::openai_completions, body, {});
        ASSERT_FALSE(decoded) << body;
        EXPECT_EQ(decoded.error().param(), param) << body;
    }
}

TEST(OpenAiCompletions, EchoRepeatsThePromptWholeAndStreamed) {
    domain::Request request;
    request.prompt = domain::Content("Già ");
    request.echo = true;
    Envelope envelope = envelope_of(true);
    envelope.request = &request;
    domain::Response response;
    response.text = domain::Content("fatto 😀");
    response.usage.prompt_tokens = 2;
    response.usage.source = domain::Usage::Source::upstream;
    for (const bool stream : {false, true}) {
        const std::string body =
            stream ? stream_of(Face::openai_completions, envelope, response, 1)
                   : encode_response(Face::openai_completions, envelope, response);
        const auto decoder = make_reply_decoder(Dialect::openai, Operation::complete, stream);
        const auto read = replay_reply(*decoder, body, 3);
        ASSERT_TRUE(read) << read.error().message();
        EXPECT_EQ(read->text.text(), "Già fatto 😀");
        EXPECT_EQ(read->usage, response.usage);
    }
}

TEST(OpenAiCompletions, LogprobsAreParallelArrays) {
    domain::Response response;
    response.text = domain::Content("è!");
    response.logprobs = {{"è", -0.5F, {{"è", -0.5F}, {"e", -2.0F}}}, {"!", -0.25F, {}}};
    const std::string whole =
        encode_response(Face::openai_completions, envelope_of(false), response);
    EXPECT_THAT(whole, HasSubstr(R"("tokens":["è","!"],"token_logprobs":[-0.5,-0.25],)"
                                 R"("top_logprobs":[{"è":-0.5,"e":-2},{}],"text_offset":[0,1])"));
    const auto decoder = make_reply_decoder(Dialect::openai, Operation::complete, false);
    const auto read = replay_reply(*decoder, whole, 100);
    ASSERT_TRUE(read);
    expect_same(*read, response);
}

TEST(OpenAiEmbeddings, GoBothWaysAsNumbersAndAsBase64) {
    const auto decoded = decode_request(
        Face::openai_embeddings,
        R"({"model":"a","input":["x","y"],"encoding_format":"base64","dimensions":2})", {});
    ASSERT_TRUE(decoded) << decoded.error().message();
    EXPECT_TRUE(decoded->base64_embeddings);
    EXPECT_EQ(decoded->request.dimensions, 2U);
    EXPECT_EQ(decoded->request.inputs[1].text(), "y");
    const auto upstream = encode_upstream(Dialect::openai, decoded->request, "b");
    ASSERT_TRUE(upstream);
    const auto again = decode_request(Face::openai_embeddings, upstream->body, {});
    ASSERT_TRUE(again);
    EXPECT_EQ(again->request.inputs, decoded->request.inputs);

    domain::Response response;
    response.embeddings = {{0.5F, -1.25F}, {3e-9F, 1.0F}};
    response.usage.prompt_tokens = 2;
    for (const bool base64 : {false, true}) {
        Envelope envelope = envelope_of(false);
        envelope.base64_embeddings = base64;
        const std::string body = encode_response(Face::openai_embeddings, envelope, response);
        EXPECT_THAT(body, HasSubstr(base64 ? R"("embedding":"AAAAPwAAoL8=")"
                                           : R"("embedding":[0.5,-1.25])"));
        const auto decoder = make_reply_decoder(Dialect::openai, Operation::embed, false);
        const auto read = replay_reply(*decoder, body, 9);
        ASSERT_TRUE(read) << read.error().message();
        EXPECT_EQ(read->embeddings, response.embeddings);
        EXPECT_EQ(read->usage.prompt_tokens, 2U);
    }
}

TEST(OpenAiEmbeddings, RefusesTokensAndEmptyTexts) {
    for (const std::string_view input : {"[1,2]", "[[1]]", "[]", "\"\"", "[\"x\",\"\"]", "7"}) {
        const auto decoded = decode_request(
            Face::openai_embeddings, R"({"model":"a","input":)" + std::string(input) + "}", {});
        ASSERT_FALSE(decoded) << input;
        EXPECT_EQ(decoded.error().param(), "input") << input;
    }
}

}  // namespace
}  // namespace molly::dialects
