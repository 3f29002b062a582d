#include "pipeline/internal/conversation.h"

#include <gtest/gtest.h>

namespace molly::pipeline {
namespace {

TEST(Conversation, IsKnownByItsMemberAndItsFirstTurns) {
    domain::Request asked;
    asked.caller.member = "anna";
    asked.messages.push_back(domain::text_message(domain::Role::user, "ciao"));
    const std::string name = conversation_of(asked, "key");
    EXPECT_TRUE(name.starts_with("anna/"));
    EXPECT_EQ(name.size(), 37U);
    asked.messages.push_back(domain::text_message(domain::Role::user, "second"));
    EXPECT_EQ(conversation_of(asked, "key"), name);
    EXPECT_NE(conversation_of(asked, "other key"), name);
    asked.caller.member = "bruno";
    EXPECT_NE(conversation_of(asked, "key"), name);
    asked.extensions.conversation = "7";
    EXPECT_EQ(conversation_of(asked, "key"), "bruno/7");
    asked.caller.member = "anna";
    asked.extensions.conversation = name.substr(5);
    EXPECT_EQ(conversation_of(asked, "key"), name) << "whoever knows the name may say it";
    asked.extensions.conversation.clear();
    asked.messages.clear();
    EXPECT_EQ(conversation_of(asked, "key"), "");
}

}  // namespace
}  // namespace molly::pipeline
