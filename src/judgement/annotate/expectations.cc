#include "annotate/expectations.h"

#include <algorithm>
#include <utility>

#include "annotate/specialists.h"
#include "profile/predictor.h"

namespace molly::annotate {
namespace {

class LearnedExpectations final : public Expectations {
public:
    LearnedExpectations(std::shared_ptr<const profile::Predictor> predictor,
                        std::shared_ptr<const profile::Classifier> classifier)
        : predictor_(std::move(predictor)), classifier_(std::move(classifier)) {}

    const std::vector<std::string>& models() const noexcept override {
        return predictor_->columns();
    }
    std::vector<double> of(const domain::Request& request) const override {
        std::vector<double> out;
        const std::string text = asked_text(request);
        if (text.empty()) return out;
        for (const float score : predictor_->predict(profile::view_of(text, *classifier_)))
            out.push_back(std::clamp(static_cast<double>(score), 0.0, 1.0));
        return out;
    }

private:
    std::shared_ptr<const profile::Predictor> predictor_;
    std::shared_ptr<const profile::Classifier> classifier_;
};

}  // namespace

Result<std::unique_ptr<Expectations>> Expectations::make(std::string_view bytes) {
    TRY(auto predictor, profile::Predictor::make(bytes));
    TRY(auto classifier, profile::Classifier::built_in());
    return std::make_unique<LearnedExpectations>(std::move(predictor), std::move(classifier));
}

}  // namespace molly::annotate
