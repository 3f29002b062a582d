#pragma once
// A specialist's class from a few of its prompts, beside the classifier and without training it
// again: the middle of their rare features, and how far from it others lie. Immutable.
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "profile/classifier.h"

namespace molly::profile {

class Prototype {
public:
    /// From at least five prompts; twenty are a good start. The rarities of features, and the
    /// ordinary requests that the prompts are set apart from, come from the built-in model. Errors:
    /// invalid_request (too few prompts), corrupt.
    static Result<std::shared_ptr<const Prototype>> make(std::span<const std::string> prompts);
    virtual ~Prototype() = default;

    /// The calibrated probability that `text` is one for this specialist.
    virtual double share(std::string_view text) const = 0;
};

}  // namespace molly::profile
