#include "pipeline/internal/verifier.h"

#include <vector>

namespace molly::pipeline {

std::optional<Verifier> verifier_of(const router::Plan::Step& step, const Parts& parts) {
    using domain::ConfidenceSource;
    if (step.measure.source == ConfidenceSource::stated)
        return Verifier{.target = step.target, .adapter = step.adapter, .own = true};
    if (step.measure.source != ConfidenceSource::verifier) return std::nullopt;
    std::vector<std::string> names;
    for (const targets::Target* target : parts.targets)
        names.push_back(target->spec().id);
    const auto wanted = router::resolve_model(step.measure.verifier, names, parts.routing);
    if (!wanted) return std::nullopt;
    for (const targets::Target* target : parts.targets) {
        if (target->spec().id != wanted->target) continue;
        const bool own =
            target->spec().id == step.target->id &&
            router::adapter_name(wanted->adapter) == router::adapter_name(step.adapter);
        return Verifier{.target = target->shared_spec(), .adapter = wanted->adapter, .own = own};
    }
    return std::nullopt;
}

}  // namespace molly::pipeline
