#include "evaluate/router_exam.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

#include <fmt/format.h>

#include "evaluate/internal/thread_time.h"

namespace molly::evaluate {
namespace {

using profile::Predictor;
using profile::PromptView;

/// shape: [columns][prompts]
using Predictions = std::vector<std::vector<float>>;

double mean(const std::vector<float>& values) noexcept {
    double sum = 0;
    for (const float value : values)
        sum += value;
    return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

/// The fold of each prompt; equal prompts share theirs.
std::vector<std::uint32_t> folds_of(const std::vector<std::string>& prompts, std::uint32_t folds,
                                    std::uint32_t seed) {
    std::map<std::string_view, std::uint32_t> of;
    for (const std::string& prompt : prompts)
        of.emplace(prompt, 0);
    std::vector<std::uint32_t> order(of.size());
    std::iota(order.begin(), order.end(), 0U);
    std::mt19937 random(seed + 1);
    for (std::size_t i = order.size() - 1; i > 0; --i)
        std::swap(order[i], order[random() % (i + 1)]);
    std::size_t next = 0;
    for (auto& [prompt, fold] : of)
        fold = order[next++] % folds;
    std::vector<std::uint32_t> out;
    for (const std::string& prompt : prompts)
        out.push_back(of[prompt]);
    return out;
}

Result<Predictions> cross_validate(const ScoreTable& table, const std::vector<PromptView>& views,
                                   const RouterExamOptions& options, std::uint32_t repeat,
                                   const std::function<void(double)>& watch) {
    const auto folds = folds_of(table.prompts, options.folds, repeat);
    Predictions out(table.columns.size(), std::vector<float>(views.size()));
    for (std::uint32_t fold = 0; fold < options.folds; ++fold) {
        std::vector<const PromptView*> seen;
        Predictions scores(table.columns.size());
        for (std::size_t i = 0; i < views.size(); ++i) {
            if (folds[i] == fold) continue;
            seen.push_back(&views[i]);
            for (std::size_t column = 0; column < scores.size(); ++column)
                scores[column].push_back(table.scores[column][i]);
        }
        TRY(const std::shared_ptr<const Predictor> predictor,
            Predictor::train(seen, table.columns, scores, options.predictor));
        for (std::size_t i = 0; i < views.size(); ++i) {
            if (folds[i] != fold) continue;
            const std::vector<float> expected = predictor->predict(views[i]);
            for (std::size_t column = 0; column < expected.size(); ++column)
                out[column][i] = expected[column];
        }
        if (watch) watch((repeat + (fold + 1.0) / options.folds) / options.repeats);
    }
    return out;
}

Result<std::size_t> place(const ScoreTable& table, const std::string& wanted,
                          const std::string& usual, bool highest) {
    const int found = table.place_of(wanted.empty() ? usual : wanted);
    if (found >= 0) return static_cast<std::size_t>(found);
    if (!wanted.empty()) {
        return fail(
            Error(ErrorCode::invalid_request, fmt::format("the table has no column {}; it has {}",
                                                          wanted, fmt::join(table.columns, ", ")))
                .italian(fmt::format("la tabella non ha la colonna {}; ha {}", wanted,
                                     fmt::join(table.columns, ", "))));
    }
    std::size_t best = 0;
    for (std::size_t i = 1; i < table.scores.size(); ++i) {
        const double difference = mean(table.scores[i]) - mean(table.scores[best]);
        if (highest ? difference > 0 : difference < 0) best = i;
    }
    return best;
}

/// How many prompts a second of processor time are read, weighed and decided on this thread.
double speed_of(const ScoreTable& table, const profile::Classifier& classifier,
                const Predictor& predictor) {
    const double begin = thread_seconds();
    std::size_t done = 0;
    float kept = 0;
    double took = 0;
    for (; took < 0.5; took = thread_seconds() - begin) {
        const std::string& prompt = table.prompts[done++ % table.prompts.size()];
        const auto expected = predictor.predict(profile::view_of(prompt, classifier));
        kept = std::max(kept, *std::max_element(expected.begin(), expected.end()));
    }
    return kept > -1e9F ? static_cast<double>(done) / took : 0;
}

/// Each prompt to the model of the highest prediction, beside the best model and the best answer.
void add_many(const ScoreTable& table, const Predictions& predictions, RouterReport& report) {
    const std::size_t count = table.prompts.size();
    for (std::size_t i = 0; i < count; ++i) {
        std::size_t chosen = 0;
        float best = table.scores[0][i];
        for (std::size_t column = 1; column < table.scores.size(); ++column) {
            if (predictions[column][i] > predictions[chosen][i]) chosen = column;
            best = std::max(best, table.scores[column][i]);
        }
        report.routed_quality += table.scores[chosen][i] / static_cast<double>(count);
        report.best_quality += best / static_cast<double>(count);
    }
    for (std::size_t column = 0; column < table.scores.size(); ++column) {
        const double quality = mean(table.scores[column]);
        if (column > 0 && quality <= report.best_single_quality) continue;
        report.best_single_quality = quality;
        report.best_single = table.columns[column];
    }
}

void add_curve(const Curve& curve, double share, Curve& to) {
    to.apgr += curve.apgr * share;
    for (std::size_t i = 0; i < to.recovered.size(); ++i)
        to.recovered[i] += curve.recovered[i] * share;
}

/// Quality over cost of the curve's points, the weak answer costing nothing where no costs are.
void add_averages(const ScoreTable& table, std::size_t weak, std::size_t strong,
                  RouterReport& report) {
    const bool priced = !table.costs.empty();
    const double low = priced ? mean(table.costs[weak]) : 0;
    const double high = priced ? mean(table.costs[strong]) : 1;
    const double gap = report.strong_quality - report.weak_quality;
    std::vector<std::pair<double, double>> points;
    for (std::size_t i = 0; i < report.curve.recovered.size(); ++i) {
        points.emplace_back(low + (high - low) * static_cast<double>(i) / 10,
                            report.weak_quality + gap * report.curve.recovered[i]);
    }
    report.quality_average = average_quality(points);
    report.random_quality_average = (report.weak_quality + report.strong_quality) / 2;
}

std::vector<PromptView> views_of(const ScoreTable& table, const profile::Classifier& classifier) {
    std::vector<PromptView> views;
    views.reserve(table.prompts.size());
    for (const std::string& prompt : table.prompts)
        views.push_back(profile::view_of(prompt, classifier));
    return views;
}

/// Predictions of the table's columns by a predictor that may know others too.
Result<Predictions> ask(const Predictor& predictor, const ScoreTable& table,
                        const std::vector<PromptView>& views) {
    std::vector<std::size_t> places;
    for (const std::string& column : table.columns) {
        const auto& known = predictor.columns();
        const auto found = std::find(known.begin(), known.end(), column);
        if (found == known.end()) {
            return fail(Error(ErrorCode::invalid_request,
                              fmt::format("the predictor knows no column {}; it knows {}", column,
                                          fmt::join(known, ", ")))
                            .italian(fmt::format("il predittore non conosce la colonna {}; conosce "
                                                 "{}",
                                                 column, fmt::join(known, ", "))));
        }
        places.push_back(static_cast<std::size_t>(found - known.begin()));
    }
    Predictions out(table.columns.size());
    for (const PromptView& view : views) {
        const auto expected = predictor.predict(view);
        for (std::size_t column = 0; column < out.size(); ++column)
            out[column].push_back(expected[places[column]]);
    }
    return out;
}

}  // namespace

Result<std::shared_ptr<const Predictor>> learn(const ScoreTable& table,
                                               const profile::PredictorOptions& options,
                                               const profile::Classifier& classifier) {
    const std::vector<PromptView> views = views_of(table, classifier);
    std::vector<const PromptView*> all;
    for (const PromptView& view : views)
        all.push_back(&view);
    return Predictor::train(all, table.columns, table.scores, options);
}

Result<RouterReport> examine_router(const ScoreTable& table, const RouterExamOptions& options,
                                    const profile::Classifier& classifier,
                                    const Predictor* predictor,
                                    const std::function<void(double)>& watch) {
    TRY(const std::size_t weak, place(table, options.weak, "weak", false));
    TRY(const std::size_t strong, place(table, options.strong, "strong", true));
    const std::vector<PromptView> views = views_of(table, classifier);
    RouterReport report;
    report.rows = table.prompts.size();
    report.dropped = table.dropped;
    report.weak = table.columns[weak];
    report.strong = table.columns[strong];
    report.weak_quality = mean(table.scores[weak]);
    report.strong_quality = mean(table.scores[strong]);
    std::vector<double> gains;
    for (std::size_t i = 0; i < views.size(); ++i) {
        const float low = table.scores[weak][i];
        const float high = table.scores[strong][i];
        gains.push_back(static_cast<double>(high) - low);
        report.oracle_quality += std::max(low, high) / static_cast<double>(views.size());
    }
    report.oracle_apgr = curve_of(gains, gains).apgr;
    const std::uint32_t repeats = predictor != nullptr ? 1 : std::max(1U, options.repeats);
    report.curve.cpt50 = report.curve.cpt80 = 0;
    for (std::uint32_t repeat = 0; repeat < repeats; ++repeat) {
        TRY(const Predictions predictions,
            predictor != nullptr ? ask(*predictor, table, views)
                                 : cross_validate(table, views, options, repeat, watch));
        std::vector<double> ranks;
        for (std::size_t i = 0; i < views.size(); ++i)
            ranks.push_back(static_cast<double>(predictions[strong][i]) - predictions[weak][i]);
        const Curve curve = curve_of(ranks, gains);
        add_curve(curve, 1.0 / repeats, report.curve);
        report.curve.cpt50 += curve.cpt50 / repeats;
        report.curve.cpt80 += curve.cpt80 / repeats;
        if (repeat > 0) continue;
        report.apgr = bootstrap_apgr(ranks, gains, options.resamples);
        add_many(table, predictions, report);
    }
    add_averages(table, weak, strong, report);
    std::shared_ptr<const Predictor> timed;
    if (predictor == nullptr) {
        TRY(timed, learn(table, {.penalty = options.predictor.penalty, .rounds = 1}, classifier));
    }
    report.decisions_per_second =
        speed_of(table, classifier, predictor != nullptr ? *predictor : *timed);
    return report;
}

}  // namespace molly::evaluate
