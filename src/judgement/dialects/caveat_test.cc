// A doubtful answer says so in every dialect, whole and streamed; so does one whose prefix was to
// be kept.
#include <gtest/gtest.h>

#include "dialects/dialects.h"

namespace molly::dialects {
namespace {

domain::Response doubtful() {
    domain::Response response;
    response.text = domain::Content("forse");
    response.caveat = "low_confidence";
    response.prefix = "class_forbids";
    return response;
}

constexpr std::string_view told = R"("molly":{"caveat":"low_confidence","prefix":"class_forbids"})";

TEST(Caveat, IsToldOnceInEveryDialect) {
    for (const Face face : {Face::openai_chat, Face::openai_completions, Face::openai_responses,
                            Face::anthropic_messages, Face::ollama_chat, Face::ollama_generate}) {
        Envelope envelope;
        envelope.id = "r1";
        envelope.model = "m";
        const std::string whole = encode_response(face, envelope, doubtful());
        EXPECT_NE(whole.find(told), std::string::npos) << whole;
        const auto stream = make_stream_encoder(face, envelope);
        domain::Delta delta;
        delta.text = "forse";
        std::string bytes = stream->begin() + stream->delta(delta);
        EXPECT_EQ(bytes.find(told), std::string::npos) << bytes;
        const std::string end = stream->end(doubtful());
        const auto at = end.find(told);
        ASSERT_NE(at, std::string::npos) << end;
        EXPECT_EQ(end.find(told, at + 1), std::string::npos) << end;
    }
}

TEST(Caveat, AnAnswerThatIsSureSaysNothing) {
    domain::Response response;
    response.text = domain::Content("certo");
    EXPECT_EQ(encode_response(Face::openai_chat, {}, response).find("molly"), std::string::npos);
}

}  // namespace
}  // namespace molly::dialects
