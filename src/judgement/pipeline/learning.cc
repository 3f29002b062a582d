// What the router learns from judged answers, and how it is kept.
#include "base/coroutine.h"
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
    const auto changed = parts_.estimates->learn(trace.target, trace.adapter, trace.capability,
                                                 score, weight_of_person);
    co_return co_await parts_.store.put_estimates(stored(changed));
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
