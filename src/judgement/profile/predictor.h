#pragma once
// How well will each of several models answer a prompt? Learned from a table of scores, from the
// text of the prompts alone: ridge regression over pieces of text, the structure of the question,
// and the classifier's topics. Immutable; safe from any thread.
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "profile/classifier.h"

namespace molly::profile {

struct PredictorOptions {
    double penalty = 2;         ///< of the squared weights
    std::uint32_t rounds = 30;  ///< of the conjugate gradients
};

/// What is known of a prompt before anything is learned: hashed pieces of text, those of the
/// options to choose from apart from those of the question, structure, topics, difficulty. Made
/// once for each prompt of a table, because several predictors are trained on them.
struct PromptView {
    std::vector<std::pair<std::uint32_t, float>> stem;     ///< hash, occurrences
    std::vector<std::pair<std::uint32_t, float>> options;  ///< likewise; empty: there are none
    std::vector<std::pair<std::uint32_t, float>> fixed;    ///< the other views, weighted
};
PromptView view_of(std::string_view prompt, const Classifier& classifier);

class Predictor {
public:
    /// `scores` belong to `views`. shape: [columns][prompts]. Errors: invalid_request.
    static Result<std::shared_ptr<const Predictor>> train(
        std::span<const PromptView* const> views, const std::vector<std::string>& columns,
        const std::vector<std::vector<float>>& scores, const PredictorOptions& options);
    /// Errors: corrupt.
    static Result<std::shared_ptr<const Predictor>> make(std::string_view bytes);
    virtual ~Predictor() = default;

    virtual const std::vector<std::string>& columns() const noexcept = 0;
    /// Expected scores. shape: [columns]
    virtual std::vector<float> predict(const PromptView& view) const = 0;
    virtual std::string bytes() const = 0;
};

}  // namespace molly::profile
