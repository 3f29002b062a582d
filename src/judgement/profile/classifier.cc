#include "profile/classifier.h"

#include <algorithm>

#include "profile/internal/linear_classifier.h"

namespace molly::profile {

domain::TaskType Reading::task() const noexcept {
    return static_cast<domain::TaskType>(std::max_element(tasks.begin(), tasks.end()) -
                                         tasks.begin());
}

Reading LinearClassifier::read(std::string_view text) const {
    thread_local Features features;  // their memory is kept, the text's content is not
    features_of(text, features);
    return reading_of(model_, sum_rows(model_, features));
}

Result<std::shared_ptr<const Classifier>> Classifier::make(std::string_view bytes) {
    TRY(Model model, model_from(bytes));
    return std::make_shared<const LinearClassifier>(std::move(model));
}

Result<std::shared_ptr<const Classifier>> Classifier::built_in() {
    static const Result<std::shared_ptr<const Classifier>> one = make(built_in_model());
    return one;
}

}  // namespace molly::profile
