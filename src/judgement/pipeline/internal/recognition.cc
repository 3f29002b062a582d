#include "pipeline/internal/recognition.h"

#include <algorithm>

namespace molly::pipeline {

void LoweredConversations::add(std::string conversation) {
    const std::scoped_lock lock(mutex_);
    if (names_.size() >= most) names_.clear();
    names_.insert(std::move(conversation));
}

bool LoweredConversations::contains(const std::string& conversation) const {
    const std::scoped_lock lock(mutex_);
    return names_.contains(conversation);
}

void recognise(const annotate::Fingerprinter& fingerprinter, const store::Store& store,
               domain::AnnotatedRequest& annotated) {
    domain::Signal signal{"fingerprint", domain::Sensitivity::public_, 0};
    for (const auto& prints : fingerprinter.of_all(annotated.request)) {
        const auto known = store.recognise(prints, annotate::fingerprints_enough);
        if (!known) continue;
        annotated.label = join(annotated.label, known->label);
        signal.sensitivity = std::max(signal.sensitivity, known->label.sensitivity);
        signal.count += known->count;
    }
    if (signal.count > 0) annotated.signals.push_back(std::move(signal));
}

bool worth_knowing(const domain::Label& label, std::span<const domain::Signal> signals,
                   domain::Sensitivity above) noexcept {
    // The first signal says what was declared. What only the fingerprints raised is known already;
    // to know all that stood beside it would let the label creep from text to text.
    const auto raises = [&](const domain::Signal& signal) {
        const bool own = signal.source != "fingerprint" && signal.source != "conversation";
        return own && (signal.sensitivity > signals.front().sensitivity ||
                       signal.source.starts_with("rule:"));
    };
    if (signals.empty()) return false;
    if (std::any_of(signals.begin() + 1, signals.end(), raises)) return true;
    const bool from_elsewhere =
        std::any_of(signals.begin(), signals.end(),
                    [](const domain::Signal& signal) { return signal.source == "fingerprint"; });
    return label.sensitivity > above && !from_elsewhere;
}

void remember(const annotate::Fingerprinter& fingerprinter, store::Store& store,
              const domain::Request& request, const domain::Label& label) {
    for (const auto& prints : fingerprinter.of_said(request))
        store.remember(prints, label);
}

}  // namespace molly::pipeline
