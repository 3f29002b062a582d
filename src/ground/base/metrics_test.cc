#include "base/metrics.h"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace molly {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Metrics, RendersTheTextFormat) {
    Metrics metrics;
    metrics.counter("molly_requests_total", "Requests.", metric_label("tier", "T0")).add(3);
    metrics.gauge("molly_queue", "Waiting.").set(-2);
    Histogram& seconds = metrics.histogram("molly_seconds", "Time.", metric_label("tier", "T1"));
    seconds.observe(0.0001);  // on a bound: belongs below it
    seconds.observe(0.2);
    seconds.observe(1000);
    const std::string text = metrics.render();
    EXPECT_THAT(text, HasSubstr("# HELP molly_requests_total Requests.\n"
                                "# TYPE molly_requests_total counter\n"
                                "molly_requests_total{tier=\"T0\"} 3\n"));
    EXPECT_THAT(text, HasSubstr("# TYPE molly_queue gauge\nmolly_queue -2\n"));
    EXPECT_THAT(text, HasSubstr("molly_seconds_bucket{tier=\"T1\",le=\"0.0001\"} 1\n"));
    EXPECT_THAT(text, HasSubstr("molly_seconds_bucket{tier=\"T1\",le=\"0.1\"} 1\n"));
    EXPECT_THAT(text, HasSubstr("molly_seconds_bucket{tier=\"T1\",le=\"0.25\"} 2\n"));
    EXPECT_THAT(text, HasSubstr("molly_seconds_bucket{tier=\"T1\",le=\"+Inf\"} 3\n"));
    EXPECT_THAT(text, HasSubstr("molly_seconds_count{tier=\"T1\"} 3\n"));
}

TEST(Metrics, SameNameAndLabelsAreOneMetric) {
    Metrics metrics;
    metrics.counter("a", "A.", "x=\"1\"").add();
    metrics.counter("a", "A.", "x=\"1\"").add();
    metrics.counter("a", "A.", "x=\"2\"").add();
    EXPECT_EQ(metrics.counter("a", "A.", "x=\"1\"").value(), 2U);
    EXPECT_EQ(metrics.counter("a", "A.", "x=\"2\"").value(), 1U);
}

TEST(Metrics, SeriesOfANameAreBounded) {
    Metrics metrics;
    for (int i = 0; i < 1500; ++i)
        metrics.counter("many", "Many.", metric_label("id", std::to_string(i))).add();
    EXPECT_EQ(metrics.counter("many", "Many.", R"(overflow="true")").value(), 500U);
    EXPECT_THAT(metrics.render(), Not(HasSubstr("id=\"1000\"")));
}

TEST(Metrics, LabelValuesAreEscaped) {
    EXPECT_EQ(metric_label("k", "a\"b\\c\nd"), R"(k="a\"b\\c\nd")");
}

TEST(Metrics, CountsFromManyThreads) {
    Metrics metrics;
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i < 4; ++i) {
            threads.emplace_back([&metrics] {
                for (int k = 0; k < 1000; ++k)
                    metrics.counter("n", "N.").add();
            });
        }
    }
    EXPECT_EQ(metrics.counter("n", "N.").value(), 4000U);
}

}  // namespace
}  // namespace molly
