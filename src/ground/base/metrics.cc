#include "base/metrics.h"

#include <algorithm>

#include <fmt/format.h>

namespace molly {
namespace {

constexpr std::size_t series_max = 1000;  // per name

std::string braced(std::string_view labels) {
    return labels.empty() ? std::string() : fmt::format("{{{}}}", labels);
}

}  // namespace

const std::vector<double>& Histogram::bounds() {
    static const std::vector<double> bounds = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005,
                                               0.01,   0.025,   0.05,   0.1,   0.25,   0.5,
                                               1,      2.5,     5,      10,    30,     100};
    return bounds;
}

Histogram::Histogram() : buckets_(bounds().size() + 1) {}

void Histogram::observe(double seconds) noexcept {
    const auto at = std::lower_bound(bounds().begin(), bounds().end(), seconds) - bounds().begin();
    buckets_[static_cast<std::size_t>(at)].fetch_add(1, std::memory_order_relaxed);
    count_.fetch_add(1, std::memory_order_relaxed);
    sum_ns_.fetch_add(static_cast<std::uint64_t>(std::max(seconds, 0.0) * 1e9),
                      std::memory_order_relaxed);
}

void Histogram::render(std::string& out, std::string_view name, std::string_view labels) const {
    const std::string comma = labels.empty() ? "" : fmt::format("{},", labels);
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < bounds().size(); ++i) {
        total += buckets_[i].load(std::memory_order_relaxed);
        out += fmt::format("{}_bucket{{{}le=\"{}\"}} {}\n", name, comma, bounds()[i], total);
    }
    const std::uint64_t count = count_.load(std::memory_order_relaxed);
    out += fmt::format("{}_bucket{{{}le=\"+Inf\"}} {}\n", name, comma, std::max(count, total));
    out += fmt::format("{}_sum{} {}\n", name, braced(labels),
                       static_cast<double>(sum_ns_.load(std::memory_order_relaxed)) * 1e-9);
    out += fmt::format("{}_count{} {}\n", name, braced(labels), std::max(count, total));
}

template <class Metric>
Metric& Metrics::find(Families<Metric>& families, std::string_view name, std::string_view help,
                      std::string_view labels) {
    const std::scoped_lock lock(mutex_);
    Family<Metric>& family = families[std::string(name)];
    if (family.help.empty()) family.help = help;
    const auto known = family.series.find(labels);
    if (known != family.series.end()) return *known->second;
    const std::string key =
        family.series.size() < series_max ? std::string(labels) : R"(overflow="true")";
    auto& slot = family.series[key];
    if (!slot) slot = std::make_unique<Metric>();
    return *slot;
}

Counter& Metrics::counter(std::string_view name, std::string_view help, std::string_view labels) {
    return find(counters_, name, help, labels);
}
Gauge& Metrics::gauge(std::string_view name, std::string_view help, std::string_view labels) {
    return find(gauges_, name, help, labels);
}
Histogram& Metrics::histogram(std::string_view name, std::string_view help,
                              std::string_view labels) {
    return find(histograms_, name, help, labels);
}

std::string Metrics::render() const {
    const std::scoped_lock lock(mutex_);
    std::string out;
    const auto head = [&out](const std::string& name, const std::string& help,
                             std::string_view type) {
        out += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
    };
    for (const auto& [name, family] : counters_) {
        head(name, family.help, "counter");
        for (const auto& [labels, metric] : family.series)
            out += fmt::format("{}{} {}\n", name, braced(labels), metric->value());
    }
    for (const auto& [name, family] : gauges_) {
        head(name, family.help, "gauge");
        for (const auto& [labels, metric] : family.series)
            out += fmt::format("{}{} {}\n", name, braced(labels), metric->value());
    }
    for (const auto& [name, family] : histograms_) {
        head(name, family.help, "histogram");
        for (const auto& [labels, metric] : family.series)
            metric->render(out, name, labels);
    }
    return out;
}

std::string metric_label(std::string_view key, std::string_view value) {
    std::string escaped;
    for (const char c : value) {
        if (c == '\\' || c == '"') escaped += '\\';
        if (c == '\n') {
            escaped += "\\n";
        } else {
            escaped += c;
        }
    }
    return fmt::format("{}=\"{}\"", key, escaped);
}

}  // namespace molly
