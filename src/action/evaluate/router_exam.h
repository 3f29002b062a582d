#pragma once
// Examines how well prompts can be sent to the right model by their text alone.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "evaluate/curves.h"
#include "evaluate/score_table.h"
#include "profile/predictor.h"

namespace molly::evaluate {

struct RouterExamOptions {
    std::string weak;    ///< column; empty: `weak`, else the one of the lowest mean
    std::string strong;  ///< column; empty: `strong`, else the one of the highest mean
    std::uint32_t folds = 10;
    std::uint32_t repeats = 3;  ///< of the cross-validation, with other folds; the mean is told
    std::uint32_t resamples = 1000;
    profile::PredictorOptions predictor;
};

struct RouterReport {
    std::size_t rows = 0;
    std::size_t dropped = 0;
    std::string weak;
    std::string strong;
    double weak_quality = 0;
    double strong_quality = 0;
    double oracle_quality = 0;  ///< of the better of the two, prompt by prompt
    Curve curve;                ///< means over the repeats
    Interval apgr;              ///< 95 % bootstrap interval of the first repeat
    double oracle_apgr = 0;
    double quality_average = 0;         ///< RouterBench's, of the curve
    double random_quality_average = 0;  ///< the same of the straight line between the two
    double decisions_per_second = 0;    ///< on one thread, from the text to the choice
    // Where there are more than two models: each prompt to the one of the highest prediction.
    double best_single_quality = 0;
    std::string best_single;
    double routed_quality = 0;
    double best_quality = 0;  ///< of the best model, prompt by prompt
};

/// Cross-validates a predictor inside `table`; the same prompt never stands on both sides. Or, with
/// `predictor`, asks that one, which was trained elsewhere. Errors: invalid_request.
Result<RouterReport> examine_router(const ScoreTable& table, const RouterExamOptions& options,
                                    const profile::Classifier& classifier,
                                    const profile::Predictor* predictor,
                                    const std::function<void(double)>& watch);

/// A predictor of all columns from the whole table. Errors: invalid_request.
Result<std::shared_ptr<const profile::Predictor>> learn(const ScoreTable& table,
                                                        const profile::PredictorOptions& options,
                                                        const profile::Classifier& classifier);

}  // namespace molly::evaluate
