#include "targets/internal/component.h"

#include <gtest/gtest.h>

namespace molly::targets {
namespace {

using domain::OutputFormat;
using domain::Role;

adapters::Component tickets() {
    return {.instructions = "Turn the message into a ticket.", .schema = R"({"type":"object"})"};
}

domain::Request question() {
    domain::Request request;
    request.messages = {domain::text_message(Role::user, "The lamp is broken")};
    return request;
}

TEST(Component, AddsWhatTheCallerDidNotSay) {
    const domain::Request asked = as_component(question(), tickets());
    ASSERT_EQ(asked.messages.size(), 2U);
    EXPECT_EQ(asked.messages[0].role, Role::system);
    EXPECT_EQ(text_of(asked.messages[0]), "Turn the message into a ticket.");
    EXPECT_EQ(asked.format.kind, OutputFormat::Kind::json_schema);
    EXPECT_EQ(asked.format.schema, domain::Content(R"({"type":"object"})"));
}

TEST(Component, LeavesTheCallersOwnWordsAlone) {
    domain::Request with_system = question();
    with_system.messages.insert(with_system.messages.begin(),
                                domain::text_message(Role::system, "Answer in verse."));
    domain::Request with_format = question();
    with_format.format.kind = OutputFormat::Kind::json_object;
    domain::Request with_tools = question();
    with_tools.tools.emplace_back();
    domain::Request completion = question();
    completion.operation = domain::Operation::complete;
    for (const domain::Request& request : {with_system, with_format, with_tools, completion}) {
        const domain::Request asked = as_component(request, tickets());
        EXPECT_EQ(asked.messages, request.messages);
        EXPECT_EQ(asked.format, request.format);
    }
    EXPECT_EQ(as_component(question(), {}).messages, question().messages);
}

}  // namespace
}  // namespace molly::targets
