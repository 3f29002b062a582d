#pragma once
// The classifier over one model file.
#include "profile/classifier.h"
#include "profile/internal/model.h"

namespace molly::profile {

class LinearClassifier final : public Classifier {
public:
    explicit LinearClassifier(Model model) : model_(std::move(model)) {}

    Reading read(std::string_view text) const override;
    std::span<const Topic> topics() const noexcept override { return model_.topics; }
    const Model& model() const noexcept { return model_; }

private:
    Model model_;
};

}  // namespace molly::profile
