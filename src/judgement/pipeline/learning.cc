// What the router learns from judged answers, and how it is kept.
#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "base/coroutine.h"
#include "pipeline/internal/record.h"
#include "pipeline/pipeline.h"

namespace molly::pipeline {
namespace {

constexpr double weight_of_person = 1;  // of one judged answer

Error learns_nothing() {
    return Error(ErrorCode::unsupported, "nothing is learned of targets here")
        .italian("qui non si apprende nulla delle destinazioni");
}

std::vector<store::EstimateRow> stored(const std::vector<router::EstimateRow>& rows) {
    std::vector<store::EstimateRow> out;
    for (const router::EstimateRow& row : rows) {
        out.push_back({.target = row.target,
                       .adapter = row.adapter,
                       .field = std::string(to_string(row.field)),
                       .band = std::string(to_string(row.band)),
                       .mean = row.mean,
                       .weight = row.weight,
                       .updated = row.updated});
    }
    return out;
}

/// Beside the estimates, in rows of their own bands.
store::EstimateRow stored(const router::SureRow& row) {
    return {.target = row.meter.target,
            .adapter = row.meter.adapter,
            .field = std::string(to_string(row.field)),
            .band = router::band_name(row.meter.from, row.bin),
            .mean = row.mean,
            .weight = row.weight,
            .updated = row.updated};
}

}  // namespace

Task<Result<void>> Pipeline::judge(domain::Trace trace, double score) {
    if (parts_.estimates == nullptr) co_return fail(learns_nothing());
    if (!(score >= 0 && score <= 1)) {
        co_return fail(Error(ErrorCode::invalid_request, "a score must be from 0 to 1")
                           .param("score")
                           .italian("un voto deve essere da 0 a 1"));
    }
    if (trace.target.empty() || trace.lowered) {
        co_return fail(Error(ErrorCode::invalid_request, "nothing answered this request")
                           .param("receipt")
                           .italian("a questa richiesta nessuno ha risposto"));
    }
    CO_TRY_DO(co_await parts_.store.put_feedback(trace.id, score));
    auto changed = stored(parts_.estimates->learn(trace.target, router::adapter_name(trace.adapter),
                                                  trace.capability, score, weight_of_person));
    const domain::Attempt* line = trace.attempts.empty() ? nullptr : &serving(trace);
    if (line != nullptr && line->confidence && parts_.confidences != nullptr) {
        const router::Meter meter{.target = trace.target,
                                  .adapter = router::adapter_name(trace.adapter),
                                  .from = line->confidence_from};
        changed.push_back(stored(parts_.confidences->learn(
            meter, trace.capability.field(), *line->confidence, score, weight_of_person)));
    }
    co_return co_await parts_.store.put_estimates(std::move(changed));
}

/// What verifiers said of this request's answers is evidence too. A number counts for what judged
/// answers of the same number were worth.
std::vector<store::EstimateRow> Pipeline::learn_verified(const domain::Trace& trace) const {
    std::vector<store::EstimateRow> changed;
    const double weight = parts_.routing.verifier_weight;
    if (parts_.estimates == nullptr || !(weight > 0)) return changed;
    for (const domain::Attempt& line : trace.attempts) {
        // What somebody says of itself is no evidence.
        if (!line.confidence || line.confidence_from != domain::ConfidenceSource::verifier)
            continue;
        const router::Meter meter{.target = line.target,
                                  .adapter = router::adapter_name(line.adapter),
                                  .from = line.confidence_from};
        const double score =
            parts_.confidences == nullptr
                ? *line.confidence
                : parts_.confidences->at(meter, trace.capability.field(), *line.confidence);
        auto rows = stored(
            parts_.estimates->learn(meter.target, meter.adapter, trace.capability, score, weight));
        std::move(rows.begin(), rows.end(), std::back_inserter(changed));
    }
    return changed;
}

Task<Result<void>> Pipeline::learn_confidence(std::vector<router::SureRow> seen) {
    if (parts_.confidences == nullptr) co_return fail(learns_nothing());
    std::vector<store::EstimateRow> changed;
    for (const router::SureRow& row : seen) {
        const double sureness = (row.bin + 0.5) / router::Confidences::bins;
        router::Meter meter = row.meter;
        meter.adapter = router::adapter_name(meter.adapter);
        changed.push_back(
            stored(parts_.confidences->learn(meter, row.field, sureness, row.mean, row.weight)));
    }
    co_return co_await parts_.store.put_estimates(std::move(changed));
}

std::vector<router::SureRow> Pipeline::confidences() const {
    return parts_.confidences == nullptr ? std::vector<router::SureRow>()
                                         : parts_.confidences->rows();
}

std::vector<Pipeline::Line> Pipeline::lines(double precision) const {
    std::map<std::pair<router::Meter, std::optional<domain::Field>>, double> judged;
    for (const router::SureRow& row : confidences()) {
        judged[{row.meter, std::nullopt}] += row.weight;
        judged[{row.meter, row.field}] += row.weight;
    }
    std::vector<Line> lines;
    for (const auto& [key, evidence] : judged) {
        const auto& [meter, field] = key;
        lines.push_back({.meter = meter,
                         .field = field,
                         .evidence = evidence,
                         .threshold = parts_.confidences->choose(meter, field, precision)});
    }
    return lines;
}

Task<Result<void>> Pipeline::learn(std::vector<router::EstimateRow> seen) {
    if (parts_.estimates == nullptr) co_return fail(learns_nothing());
    std::vector<router::EstimateRow> changed;
    for (const router::EstimateRow& row : seen)
        changed.push_back(parts_.estimates->learn(row));
    co_return co_await parts_.store.put_estimates(stored(changed));
}

std::vector<router::EstimateRow> Pipeline::estimates() const {
    return parts_.estimates == nullptr ? std::vector<router::EstimateRow>()
                                       : parts_.estimates->rows();
}

}  // namespace molly::pipeline
