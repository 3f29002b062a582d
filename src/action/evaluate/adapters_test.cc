#include "evaluate/adapters.h"

#include <set>

#include <gtest/gtest.h>

#include "evaluate/internal/test_adapter.h"
#include "evaluate/internal/test_tasks.h"

namespace molly::evaluate {
namespace {

AdapterTrial trial_of(const TestTasks& tasks) {
    AdapterTrial trial;
    trial.base = MOLLY_TEST_MODEL;
    trial.tasks = tasks.folder();
    trial.shots = 2;
    trial.threads = 1;
    return trial;
}

TEST(TryAdapters, grades_the_base_bare_and_with_examples) {
    const TestTasks tasks;
    tasks.write("colours");
    tasks.write("animals");
    std::set<std::string> asked;
    const auto report = try_adapters(
        trial_of(tasks), [&](std::string_view what, std::uint64_t done, std::uint64_t total) {
            asked.emplace(what);
            EXPECT_LE(done, total);
        });
    ASSERT_TRUE(report) << report.error().message();
    EXPECT_EQ(asked, (std::set<std::string>{"animals base", "animals shots", "colours base",
                                            "colours shots"}));
    ASSERT_EQ(report->panels.size(), 2U);
    const PanelReport& panel = report->panels[1];
    EXPECT_EQ(panel.rows, 4U);
    EXPECT_EQ(panel.shots_mean, 2);
    EXPECT_GT(panel.shots.prompt_tokens, panel.base.prompt_tokens + 10);
    // Random weights: the schema alone makes every answer one of two labels.
    EXPECT_EQ(panel.base.too_long, 0U);
    EXPECT_EQ(panel.base.slices.size(), 2U);
    EXPECT_FALSE(panel.specialist);
    EXPECT_FALSE(report->gain_mean);
    EXPECT_EQ(report->base_hash.size(), 64U);
}

TEST(TryAdapters, writes_what_a_script_reads) {
    const TestTasks tasks;
    tasks.write("colours");
    AdapterTrial trial = trial_of(tasks);
    trial.rows = 2;
    const auto report = try_adapters(trial, [](auto, auto, auto) {});
    ASSERT_TRUE(report) << report.error().message();
    const json::value value = to_json(*report);
    const json::value& task = value.at("tasks").at(0);
    EXPECT_EQ(task.at("task").as_string(), "colours");
    EXPECT_EQ(task.at("rows").to_number<int>(), 2);
    EXPECT_TRUE(task.at("base").at("exact").at("low").is_double());
    EXPECT_FALSE(value.as_object().contains("gain_mean"));
}

TEST(TryAdapters, an_adapter_that_changes_nothing_gains_nothing) {
    const TestTasks tasks;
    tasks.write("colours");
    tasks.write("animals");
    AdapterTrial trial = trial_of(tasks);
    trial.adapters = tasks.folder();
    trial.foreign_rows = 2;
    write_test_adapter(tasks.folder() / "colours.gguf", 0);
    write_test_adapter(tasks.folder() / "colours-50.gguf", 0);
    const auto report = try_adapters(trial, [](auto, auto, auto) {});
    ASSERT_TRUE(report) << report.error().message();
    EXPECT_FALSE(report->panels[0].specialist);
    const PanelReport& panel = report->panels[1];
    ASSERT_TRUE(panel.specialist && panel.gain && panel.foreign);
    EXPECT_EQ(panel.specialist->exact.mean, panel.base.exact.mean);
    EXPECT_EQ(panel.gain->low, 0);
    EXPECT_EQ(panel.gain->high, 0);
    EXPECT_EQ(panel.foreign->task, "animals");
    EXPECT_EQ(panel.foreign->change.mean, 0);
    ASSERT_TRUE(panel.curve.contains(50));
    EXPECT_EQ(panel.curve.at(50).mean, panel.base.exact.mean);
    ASSERT_TRUE(report->gain_mean);
    EXPECT_EQ(report->gain_mean->mean, 0);
    const json::value value = to_json(*report);
    EXPECT_EQ(value.at("gain_mean").as_double(), 0);
    EXPECT_EQ(value.at("tasks").at(1).at("curve").at(0).at("rows").to_number<int>(), 50);
}

TEST(TryAdapters, an_adapter_of_another_base_is_refused) {
    const TestTasks tasks;
    tasks.write("colours");
    AdapterTrial trial = trial_of(tasks);
    trial.adapters = tasks.folder();
    std::ofstream(tasks.folder() / "colours.gguf") << "GGUF, but not really";
    EXPECT_FALSE(try_adapters(trial, [](auto, auto, auto) {}));
}

TEST(TryAdapters, a_base_that_is_not_there_is_not_found) {
    const TestTasks tasks;
    tasks.write("colours");
    AdapterTrial trial = trial_of(tasks);
    trial.base = tasks.folder() / "none.gguf";
    const auto report = try_adapters(trial, [](auto, auto, auto) {});
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().code(), ErrorCode::not_found);
}

}  // namespace
}  // namespace molly::evaluate
