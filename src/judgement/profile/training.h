#pragma once
// Trains a classifier from labelled rows. Deterministic: the same rows and options give the same
// file. One thread; no other state.
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "profile/classifier.h"

namespace molly::profile {

/// One labelled text. What is not known of it trains nothing.
struct Example {
    std::string text;
    std::vector<std::uint8_t> topics;  ///< any of these is right; empty: unknown
    std::optional<domain::TaskType> task;
    std::optional<float> difficulty;
    std::optional<bool> out_of_scope;
    float weight = 1;
};

struct TrainingRows {
    std::vector<Topic> topics;
    std::vector<Example> train;
    std::vector<Example> calibrate;  ///< make the heads honest, and train no weight
};

struct TrainOptions {
    unsigned row_bits = 16;  ///< rows of the model, as a power of two; 64 bytes each
    std::uint32_t epochs = 6;
    double rate = 0.35;
    double decay = 2e-6;             ///< of every weight that a step touches
    double feature_dropout = 0.3;    ///< share of features that a step does not see
    std::uint32_t background = 400;  ///< ordinary requests kept in the model for specialists
    std::uint32_t seed = 1;
};

/// Reads lines of JSON: `{"topic":"biology","field":"science"}` declares a topic;
/// `{"text":...,"topic" or "field":...,"task":...,"difficulty":0.2,"out_of_scope":false,
/// "weight":1,"use":"calibrate"}` is an example. Errors: not_found, invalid_request with the line.
Result<TrainingRows> read_training_rows(const std::filesystem::path& file);

/// How honest a head is after calibration, on the rows of a cross-validation that did not fit it.
struct Honesty {
    std::size_t rows = 0;
    double loss = 0;   ///< negative log-likelihood, nats
    double error = 0;  ///< ECE, ten bins
};

struct Honesties {
    Honesty fields;
    Honesty tasks;
    Honesty scope;
};

struct Trained {
    std::string bytes;  ///< of a model file
    Honesties held_out;
};

/// `watch` is told the share that is done. Errors: invalid_request (no rows, too many topics).
Result<Trained> train(const TrainingRows& rows, const TrainOptions& options,
                      const std::function<void(double)>& watch);

}  // namespace molly::profile
