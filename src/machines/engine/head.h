#pragma once
// The output head of a model file in another quantization, and what that costs. The head is read
// whole for every token, so its size is a large part of the time of a small model.
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace molly::engine {

/// What a new head changed in the file.
struct HeadChange {
    std::string from;     ///< type of what made the logits before, as `Q8_0`
    std::string to;       ///< and after
    bool shared = false;  ///< the token embedding was the head; it stays, beside the new one
    std::uint64_t bytes_before = 0;  ///< that are read for every token's logits
    std::uint64_t bytes_after = 0;
};

/// Writes `model` with its output head as `type` (`q4_0 q4_1 q5_0 q5_1 q8_0 q4_K q5_K q6_K f16`) to
/// `out`, whole or not at all; every other tensor keeps its bytes. `marks` are text values by key
/// that the new file gets, unless the old one had them. Errors: not_found, corrupt, invalid_request
/// (type), unsupported (no head, or a width that the type cannot hold), unavailable.
Result<HeadChange> requantize_head(const std::filesystem::path& model,
                                   const std::filesystem::path& out, std::string_view type,
                                   const std::map<std::string, std::string>& marks = {});

/// How differently two files of one model predict the same text.
struct PredictionChange {
    std::uint64_t tokens = 0;      ///< that were predicted
    double perplexity_before = 0;  ///< exp of the mean negative log-probability
    double perplexity_after = 0;
    double nats = 0;        ///< mean loss per token that was added; on the model's own text the
                            ///< Kullback-Leibler divergence's estimate
    double nats_error = 0;  ///< 95% confidence: plus or minus so much
    bool own_text = false;  ///< the text was drawn from the first file's own distribution
};

struct PredictionOptions {
    std::string text;                  ///< empty: what the first file itself writes
    std::uint64_t tokens = 2048;       ///< at most so many are predicted
    std::filesystem::path backends{};  ///< folder of the ggml backends; empty: as built
    std::function<void(std::uint64_t done, std::uint64_t total)> progress = {};
};

/// Predicts one text with both files, window by window; in windows of a given text the first half
/// is context alone. Errors: as Engine::open; conflict (the files have different vocabularies),
/// invalid_request (the text is too short).
Result<PredictionChange> compare_predictions(const std::filesystem::path& before,
                                             const std::filesystem::path& after,
                                             const PredictionOptions& options);

}  // namespace molly::engine
