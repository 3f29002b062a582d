#pragma once
// Counters and histograms with bounded label sets, rendered as Prometheus text. Safe from any
// thread.
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace molly {

class Counter {
public:
    void add(std::uint64_t amount = 1) noexcept {
        value_.fetch_add(amount, std::memory_order_relaxed);
    }
    std::uint64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }

private:
    std::atomic<std::uint64_t> value_ = 0;
};

class Gauge {
public:
    void set(std::int64_t value) noexcept { value_.store(value, std::memory_order_relaxed); }
    void add(std::int64_t amount) noexcept { value_.fetch_add(amount, std::memory_order_relaxed); }
    std::int64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }

private:
    std::atomic<std::int64_t> value_ = 0;
};

/// Durations in seconds over fixed buckets, 100 microseconds to 100 seconds.
class Histogram {
public:
    static const std::vector<double>& bounds();  ///< upper bounds, seconds, increasing
    Histogram();
    void observe(double seconds) noexcept;
    void render(std::string& out, std::string_view name, std::string_view labels) const;

private:
    std::vector<std::atomic<std::uint64_t>> buckets_;  // shape: [bounds + 1]
    std::atomic<std::uint64_t> count_ = 0;
    std::atomic<std::uint64_t> sum_ns_ = 0;
};

/// Every metric of one process. `labels` is rendered text such as `tier="T0"`; its values come from
/// closed sets, and at most 1,000 series exist per name: later ones fall into `overflow="true"`.
class Metrics {
public:
    Counter& counter(std::string_view name, std::string_view help, std::string_view labels = "");
    Gauge& gauge(std::string_view name, std::string_view help, std::string_view labels = "");
    Histogram& histogram(std::string_view name, std::string_view help,
                         std::string_view labels = "");

    /// Prometheus text exposition format 0.0.4.
    std::string render() const;

private:
    template <class Metric>
    struct Family {
        std::string help;
        std::map<std::string, std::unique_ptr<Metric>, std::less<>> series;
    };
    template <class Metric>
    using Families = std::map<std::string, Family<Metric>, std::less<>>;
    template <class Metric>
    Metric& find(Families<Metric>& families, std::string_view name, std::string_view help,
                 std::string_view labels);

    mutable std::mutex mutex_;
    Families<Counter> counters_;
    Families<Gauge> gauges_;
    Families<Histogram> histograms_;
};

/// `key="value"` with the value escaped as the exposition format asks.
std::string metric_label(std::string_view key, std::string_view value);

}  // namespace molly
