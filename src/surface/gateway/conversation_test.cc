#include "gateway/conversation.h"

#include <gtest/gtest.h>

namespace molly::gateway {
namespace {

TEST(Conversation, comes_back_as_it_was_stored) {
    Conversation kept;
    kept.conversation = "c-1";
    kept.response = R"({"id":"resp_1","text":"perché"})";
    kept.messages.push_back(domain::text_message(domain::Role::user, "ciao \"mondo\"\n"));
    domain::Message turn;
    turn.role = domain::Role::assistant;
    turn.reasoning = domain::Content("thinking");
    turn.tool_calls.push_back({"call_1", "look", domain::Content(R"({"x":1})")});
    kept.messages.push_back(turn);
    domain::Message result = domain::text_message(domain::Role::tool, "42");
    result.tool_call_id = "call_1";
    result.tool_failed = true;
    kept.messages.push_back(result);
    domain::Message image;
    domain::Part part;
    part.kind = domain::Part::Kind::image;
    part.media_type = "image/png";
    part.text = domain::Content("aGVsbG8=");
    image.parts.push_back(part);
    kept.messages.push_back(image);

    const auto back = conversation_from(sealed_text(kept));
    ASSERT_TRUE(back) << back.error().message();
    EXPECT_EQ(back->conversation, kept.conversation);
    EXPECT_EQ(back->response, kept.response);
    EXPECT_TRUE(back->messages == kept.messages);
}

TEST(Conversation, damage_is_corrupt) {
    EXPECT_EQ(conversation_from("{").error().code(), ErrorCode::corrupt);
    EXPECT_EQ(conversation_from("[]").error().code(), ErrorCode::corrupt);
}

TEST(Conversation, an_answer_becomes_the_assistants_turn) {
    domain::Response response;
    response.text = domain::Content("yes");
    const domain::Message turn = turn_of(response);
    EXPECT_EQ(turn.role, domain::Role::assistant);
    ASSERT_EQ(turn.parts.size(), 1U);
    EXPECT_EQ(turn.parts[0].text.text(), "yes");
}

}  // namespace
}  // namespace molly::gateway
