#pragma once
// Answers that the tests of several faces share.
#include <gtest/gtest.h>

#include "dialects/dialects.h"

namespace molly::dialects {

inline domain::Response family_answer() {
    domain::Response response;
    response.text = domain::Content("famiglia 👨‍👩‍👧‍👦 \"è\"\n");
    response.reasoning = domain::Content("think 😀");
    response.tool_calls = {{"call_a", "look", domain::Content(R"({"x":"é"})")},
                           {"call_b", "find", domain::Content("{}")}};
    response.finish = domain::FinishReason::tool_calls;
    response.usage = {.prompt_tokens = 9,
                      .cached_tokens = 4,
                      .answer_tokens = 5,
                      .reasoning_tokens = 2,
                      .source = domain::Usage::Source::upstream};
    return response;
}

inline Envelope envelope_of(bool usage) {
    Envelope envelope;
    envelope.id = "r1";
    envelope.model = "m";
    envelope.usage_in_stream = usage;
    return envelope;
}

inline void expect_same(const domain::Response& got, const domain::Response& wanted) {
    EXPECT_EQ(got.text, wanted.text);
    EXPECT_EQ(got.reasoning, wanted.reasoning);
    EXPECT_EQ(got.tool_calls, wanted.tool_calls);
    EXPECT_EQ(got.finish, wanted.finish);
    EXPECT_EQ(got.logprobs, wanted.logprobs);
}

}  // namespace molly::dialects
