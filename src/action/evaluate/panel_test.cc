#include "evaluate/panel.h"

#include <cstdlib>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "evaluate/internal/test_tasks.h"

namespace molly::evaluate {
namespace {

using testing::HasSubstr;

TEST(Panel, holds_questions_answers_and_the_schema) {
    const TestTasks tasks;
    tasks.write("colours");
    const auto panel = read_panel(tasks.folder() / "colours");
    ASSERT_TRUE(panel) << panel.error().message();
    EXPECT_EQ(panel->name, "colours");
    EXPECT_EQ(panel->schema, R"({"type":"string","enum":["red","green"]})");
    ASSERT_EQ(panel->held_out.size(), 4U);
    EXPECT_EQ(panel->known.size(), 3U);
    const Item& item = panel->held_out.front();
    EXPECT_EQ(item.question.size(), 2U);
    EXPECT_EQ(item.question[0].role, domain::Role::system);
    EXPECT_EQ(item.answer, "\"red\"");
    EXPECT_EQ(item.expected, json::value("red"));
    EXPECT_EQ(item.slice, "new");
}

TEST(Panel, all_of_a_folder_or_those_wanted) {
    const TestTasks tasks;
    tasks.write("colours");
    tasks.write("animals");
    const auto all = read_panels(tasks.folder(), {});
    ASSERT_TRUE(all);
    ASSERT_EQ(all->size(), 2U);
    EXPECT_EQ((*all)[0].name, "animals");
    const auto one = read_panels(tasks.folder(), {"colours"});
    ASSERT_TRUE(one);
    EXPECT_EQ(one->size(), 1U);
    EXPECT_EQ(read_panels(tasks.folder(), {"birds"}).error().code(), ErrorCode::not_found);
    EXPECT_EQ(read_panels(tasks.folder() / "colours", {}).error().code(), ErrorCode::not_found);
}

TEST(Panel, a_faulty_row_is_named) {
    const TestTasks tasks;
    tasks.write("colours");
    std::ofstream(tasks.folder() / "colours/held_out.jsonl", std::ios::app)
        << "\n{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}\n";
    const auto panel = read_panel(tasks.folder() / "colours");
    ASSERT_FALSE(panel);
    EXPECT_EQ(panel.error().code(), ErrorCode::invalid_request);
    EXPECT_THAT(panel.error().message(), HasSubstr("held_out.jsonl:6"));
}

}  // namespace
}  // namespace molly::evaluate
