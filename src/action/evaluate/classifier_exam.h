#pragma once
// Examines the capability classifier on labelled rows.
#include <cstddef>
#include <filesystem>

#include "base/result.h"
#include "profile/classifier.h"

namespace molly::evaluate {

/// Whether a head is as sure as it is right.
struct Calibration {
    double error = 0;  ///< ECE, ten bins of the likeliest answer's share
    double floor = 0;  ///< what so few rows would show of a head that is perfectly honest
};

struct ClassifierReport {
    std::size_t rows = 0;
    std::size_t fields = 0;  ///< rows whose field is known
    double field_accuracy = 0;
    double field_loss = 0;      ///< negative log-likelihood of the right field, nats
    double field_sureness = 0;  ///< mean share of the likeliest field
    Calibration field_calibration;
    std::size_t tasks = 0;  ///< rows whose task is known
    double task_accuracy = 0;
    Calibration task_calibration;
    std::size_t scopes = 0;  ///< rows of which it is known whether they are out of scope
    double scope_area = 0;   ///< area under the ROC curve
    Calibration scope_calibration;
    double microseconds_2kb = 0;  ///< of processor time, for blocks of 2 KiB made of the rows
};

/// Lines of JSON: `text`, and `field`, `task` or `out_of_scope` as far as they are known. Errors:
/// not_found, invalid_request with the line.
Result<ClassifierReport> examine_classifier(const std::filesystem::path& file,
                                            const profile::Classifier& classifier);

}  // namespace molly::evaluate
