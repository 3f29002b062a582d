#include <cstdio>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "evaluate/classifier_exam.h"
#include "evaluate/router_exam.h"

namespace molly::evaluate {
namespace {

TEST(Curve, PerfectAndUselessOrders) {
    const std::vector<double> gains = {1, 1, 0, 0, 0, 0, 0, 0, 0, 0};
    const std::vector<double> best = {9, 8, 7, 6, 5, 4, 3, 2, 1, 0};
    const Curve perfect = curve_of(best, gains);
    EXPECT_NEAR(perfect.apgr, 0.9, 1e-9);
    EXPECT_NEAR(perfect.cpt50, 0.1, 1e-9);
    EXPECT_NEAR(perfect.cpt80, 0.2, 1e-9);
    EXPECT_NEAR(perfect.recovered[1], 0.5, 1e-9);
    std::vector<double> worst(best.rbegin(), best.rend());
    EXPECT_NEAR(curve_of(worst, gains).apgr, 0.1, 1e-9);
    const std::vector<double> even(10, 0.5);
    EXPECT_NEAR(curve_of(best, even).apgr, 0.5, 1e-9);
    EXPECT_EQ(curve_of(best, std::vector<double>(10, 0.0)).apgr, 0);
}

TEST(Curve, TheIntervalHoldsTheValue) {
    std::vector<double> gains;
    std::vector<double> ranks;
    for (int i = 0; i < 200; ++i) {
        gains.push_back(i % 3 == 0 ? 1 : 0);
        ranks.push_back(i % 3 == 0 ? i : i / 2.0);
    }
    const double apgr = curve_of(ranks, gains).apgr;
    const Interval interval = bootstrap_apgr(ranks, gains, 300);
    EXPECT_LT(interval.low, apgr);
    EXPECT_GT(interval.high, apgr);
    EXPECT_LT(interval.high - interval.low, 0.4);
}

TEST(AverageQuality, IsTheHeightOfTheUpperHull) {
    EXPECT_NEAR(average_quality({{0, 0.5}, {1, 1.0}}), 0.75, 1e-9);
    EXPECT_NEAR(average_quality({{0, 0.5}, {0.5, 0.4}, {1, 1.0}}), 0.75, 1e-9);
    EXPECT_NEAR(average_quality({{0, 0.5}, {0.5, 1.0}, {1, 0.9}}), 0.875, 1e-9);
}

class TableTest : public ::testing::Test {
protected:
    std::filesystem::path write(const std::string& text) {
        const auto file = folder_ / "table.jsonl";
        std::ofstream(file) << text;
        return file;
    }
    void SetUp() override {
        folder_ = std::filesystem::temp_directory_path() /
                  ("molly-evaluate-" +
                   std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
        std::filesystem::create_directories(folder_);
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    std::filesystem::path folder_;
};

std::string arithmetic_table(bool inside) {
    std::string text;
    for (int i = 0; i < 60; ++i) {
        const bool sum = i % 2 == 0;
        const std::string prompt = sum ? "What is " + std::to_string(i) + " plus 12 times 4?"
                                       : "Tell me a story about harbour " + std::to_string(i);
        const std::string weak = sum ? "0" : "1";
        text += "{\"domain\":\"d\",\"prompt\":\"" + prompt + "\",";
        text += inside ? "\"scores\":{\"small\":" + weak + ",\"large\":1}}\n"
                       : "\"weak\":" + weak + ",\"strong\":1,\"contaminated\":0}\n";
    }
    return text;
}

TEST_F(TableTest, BothShapesAreRead) {
    const auto flat = read_score_table(write(arithmetic_table(false)));
    ASSERT_TRUE(flat.has_value());
    EXPECT_EQ(flat->prompts.size(), 60U);
    EXPECT_EQ(flat->columns, (std::vector<std::string>{"weak", "strong"}));
    const auto inside = read_score_table(write(arithmetic_table(true)));
    ASSERT_TRUE(inside.has_value());
    EXPECT_EQ(inside->place_of("large"), 1);
}

TEST_F(TableTest, BadTablesAreRefusedWithTheLine) {
    EXPECT_EQ(read_score_table(folder_ / "none").error().code(), ErrorCode::not_found);
    const auto error = [&](const std::string& text) {
        return read_score_table(write(text)).error().message();
    };
    EXPECT_NE(error("{\"prompt\":\"a\",\"x\":1}\nnonsense\n").find("line 2"), std::string::npos);
    EXPECT_NE(error("{\"x\":1}\n").find("prompt"), std::string::npos);
    EXPECT_NE(error("{\"prompt\":\"a\",\"x\":1}\n{\"prompt\":\"b\",\"y\":1}\n").find("line 2"),
              std::string::npos);
    EXPECT_NE(error("{\"prompt\":\"a\",\"x\":1,\"y\":0}\n").find("20 rows"), std::string::npos);
}

TEST_F(TableTest, AnEasyTableIsRoutedWell) {
    const auto classifier = profile::Classifier::built_in();
    ASSERT_TRUE(classifier.has_value());
    const auto table = read_score_table(write(arithmetic_table(true)));
    ASSERT_TRUE(table.has_value());
    RouterExamOptions options;
    options.folds = 5;
    options.repeats = 1;
    options.resamples = 50;
    const auto report = examine_router(*table, options, **classifier, nullptr, {});
    ASSERT_TRUE(report.has_value());
    EXPECT_EQ(report->weak, "small");
    EXPECT_EQ(report->strong, "large");
    EXPECT_GT(report->curve.apgr, 0.7);
    EXPECT_GT(report->decisions_per_second, 0);
    const auto learned = learn(*table, {}, **classifier);
    ASSERT_TRUE(learned.has_value());
    const auto asked = examine_router(*table, options, **classifier, learned->get(), {});
    ASSERT_TRUE(asked.has_value());
    EXPECT_GT(asked->curve.apgr, report->curve.apgr - 0.05);
    options.weak = "tiny";
    EXPECT_FALSE(examine_router(*table, options, **classifier, nullptr, {}).has_value());
}

TEST_F(TableTest, TheClassifierIsExamined) {
    const auto classifier = profile::Classifier::built_in();
    ASSERT_TRUE(classifier.has_value());
    std::string text;
    for (int i = 0; i < 60; ++i)
        text +=
            "{\"text\":\"Quali sono i sintomi del diabete e la terapia con insulina?\","
            "\"field\":\"medicine\",\"task\":\"chat\",\"out_of_scope\":false}\n";
    const auto report = examine_classifier(write(text), **classifier);
    ASSERT_TRUE(report.has_value());
    EXPECT_EQ(report->field_accuracy, 1);
    EXPECT_GT(report->microseconds_2kb, 0);
    EXPECT_FALSE(examine_classifier(write("{\"x\":1}\n"), **classifier).has_value());
}

}  // namespace
}  // namespace molly::evaluate
