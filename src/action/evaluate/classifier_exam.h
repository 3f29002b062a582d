#pragma once
// Examines the capability classifier on labelled rows.
#include <cstddef>
#include <filesystem>

#include "base/result.h"
#include "profile/classifier.h"

namespace molly::evaluate {

struct ClassifierReport {
    std::size_t rows = 0;
    std::size_t fields = 0;  ///< rows whose field is known
    double field_accuracy = 0;
    double field_loss = 0;         ///< negative log-likelihood of the right field, nats
    double calibration_error = 0;  ///< ECE of the likeliest field, ten bins
    std::size_t tasks = 0;         ///< rows whose task is known
    double task_accuracy = 0;
    std::size_t scopes = 0;       ///< rows of which it is known whether they are out of scope
    double scope_area = 0;        ///< area under the ROC curve
    double microseconds_2kb = 0;  ///< of processor time, for blocks of 2 KiB made of the rows
};

/// Lines of JSON: `text`, and `field`, `task` or `out_of_scope` as far as they are known. Errors:
/// not_found, invalid_request with the line.
Result<ClassifierReport> examine_classifier(const std::filesystem::path& file,
                                            const profile::Classifier& classifier);

}  // namespace molly::evaluate
