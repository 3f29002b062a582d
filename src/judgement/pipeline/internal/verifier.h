#pragma once
// Who is asked what an answer is worth. Pure.
#include <memory>
#include <optional>
#include <string>

#include "pipeline/pipeline.h"

namespace molly::pipeline {

struct Verifier {
    std::shared_ptr<const domain::TargetSpec> target;
    std::string adapter;
    /// It is who answered: what it says is a statement about itself, whatever it was declared as.
    bool own = false;
};

/// Who says what answers of this step are worth; nothing where nobody is declared, or the name
/// means no target here.
std::optional<Verifier> verifier_of(const router::Plan::Step& step, const Parts& parts);

}  // namespace molly::pipeline
