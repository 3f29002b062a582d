#include "evaluate/classifier_exam.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/json.h"
#include "domain/capability.h"
#include "evaluate/internal/thread_time.h"

namespace molly::evaluate {
namespace {

constexpr std::size_t bins = 10;
constexpr std::size_t block_bytes = 2048;

std::string text_at(const json::object& row, std::string_view key) {
    const json::value* value = row.if_contains(key);
    const json::string* text = value == nullptr ? nullptr : value->if_string();
    return text == nullptr ? std::string() : std::string(text->data(), text->size());
}

/// Sureness beside success.
class Sureness {
public:
    void add(double share, bool success) { seen_.emplace_back(share, success); }

    Calibration result() const {
        Calibration calibration;
        calibration.error = error_of([&](std::size_t i) { return seen_[i].second; });
        // Of a head that is right exactly as often as it says: rounds of chance.
        constexpr int rounds = 200;
        std::mt19937 chance(1);
        for (int round = 0; round < rounds; ++round) {
            const double error = error_of([&](std::size_t i) {
                return static_cast<double>(chance()) < seen_[i].first * 4294967296.0;
            });
            calibration.floor += error / rounds;
        }
        return calibration;
    }
    double mean() const {
        double sum = 0;
        for (const auto& [share, success] : seen_)
            sum += share;
        return seen_.empty() ? 0 : sum / static_cast<double>(seen_.size());
    }

private:
    template <class Succeeds>
    double error_of(const Succeeds& succeeds) const {
        std::array<double, bins> gap{};
        for (std::size_t i = 0; i < seen_.size(); ++i) {
            const auto bin = static_cast<std::size_t>(seen_[i].first * bins);
            gap[std::min(bins - 1, bin)] += seen_[i].first - (succeeds(i) ? 1 : 0);
        }
        double error = 0;
        for (const double one : gap)
            error += std::abs(one) / static_cast<double>(std::max<std::size_t>(seen_.size(), 1));
        return error;
    }

    std::vector<std::pair<double, bool>> seen_;
};

class Exam {
public:
    void add(const json::object& row, const profile::Reading& reading) {
        ++report_.rows;
        if (const auto field = domain::field_from(text_at(row, "field"))) {
            add_field(static_cast<std::size_t>(*field), reading.fields);
        }
        if (const auto task = domain::task_from(text_at(row, "task"))) {
            ++report_.tasks;
            report_.task_accuracy += reading.task() == *task ? 1 : 0;
            tasks_.add(reading.tasks[static_cast<std::size_t>(reading.task())],
                       reading.task() == *task);
        }
        const json::value* scope = row.if_contains("out_of_scope");
        if (scope != nullptr && scope->is_bool()) {
            scopes_.emplace_back(reading.out_of_scope, scope->as_bool());
            scope_.add(reading.out_of_scope, scope->as_bool());
        }
    }

    ClassifierReport report() {
        const auto share = [](double& sum, std::size_t count) {
            if (count > 0) sum /= static_cast<double>(count);
        };
        share(report_.field_accuracy, report_.fields);
        share(report_.field_loss, report_.fields);
        share(report_.task_accuracy, report_.tasks);
        report_.field_sureness = fields_.mean();
        report_.field_calibration = fields_.result();
        report_.task_calibration = tasks_.result();
        report_.scope_calibration = scope_.result();
        report_.scopes = scopes_.size();
        report_.scope_area = area();
        return report_;
    }

private:
    void add_field(std::size_t field, const domain::FieldShares& shares) {
        const auto best = static_cast<std::size_t>(std::max_element(shares.begin(), shares.end()) -
                                                   shares.begin());
        ++report_.fields;
        report_.field_accuracy += best == field ? 1 : 0;
        report_.field_loss -= std::log(std::max(shares[field], 1e-9F));
        fields_.add(shares[best], best == field);
    }

    /// How often a row out of scope gets the higher probability of two.
    double area() {
        std::sort(scopes_.begin(), scopes_.end());
        double below = 0;
        double pairs = 0;
        double outside = 0;
        for (const auto& [probability, out] : scopes_) {
            if (out) pairs += below;
            (out ? outside : below) += 1;
        }
        return outside > 0 && below > 0 ? pairs / outside / below : 0;
    }

    ClassifierReport report_;
    Sureness fields_;
    Sureness tasks_;
    Sureness scope_;
    std::vector<std::pair<float, bool>> scopes_;
};

/// The middle of many readings, so that a stall of the machine does not count.
double microseconds_of(const std::vector<std::string>& blocks,
                       const profile::Classifier& classifier) {
    std::vector<double> times;
    float kept = 0;
    for (std::size_t round = 0; !blocks.empty() && times.size() < 2000; ++round) {
        const double begin = thread_seconds();
        kept += classifier.read(blocks[round % blocks.size()]).difficulty;
        times.push_back((thread_seconds() - begin) * 1e6);
    }
    if (times.empty() || kept < 0) return 0;
    std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2),
                     times.end());
    return times[times.size() / 2];
}

}  // namespace

Result<ClassifierReport> examine_classifier(const std::filesystem::path& file,
                                            const profile::Classifier& classifier) {
    std::ifstream in(file);
    if (!in) {
        return fail(Error(ErrorCode::not_found, fmt::format("cannot read {}", file.string()))
                        .italian(fmt::format("impossibile leggere {}", file.string())));
    }
    Exam exam;
    std::vector<std::string> blocks(1);
    std::size_t number = 0;
    for (std::string line; std::getline(in, line);) {
        ++number;
        if (line.empty()) continue;
        const auto parsed = parse_json(line);
        const json::object* row = parsed ? parsed->if_object() : nullptr;
        const std::string text = row == nullptr ? "" : text_at(*row, "text");
        if (text.empty()) {
            return fail(
                Error(ErrorCode::invalid_request,
                      fmt::format("line {}: a JSON object with text is needed", number))
                    .italian(fmt::format("riga {}: serve un oggetto JSON con text", number)));
        }
        exam.add(*row, classifier.read(text));
        blocks.back() += text + "\n";
        if (blocks.back().size() < block_bytes) continue;
        blocks.back().resize(block_bytes);
        blocks.emplace_back();
    }
    blocks.pop_back();
    ClassifierReport report = exam.report();
    report.microseconds_2kb = microseconds_of(blocks, classifier);
    return report;
}

}  // namespace molly::evaluate
