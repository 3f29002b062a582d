#pragma once
// Which requests are for which declared specialist? Read out of example prompts, without training
// anything. Immutable; safe from any thread.
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "domain/request.h"

namespace molly::annotate {

/// A specialist as it was declared: a target's adapter, and what it is asked.
struct SpecialistPrompts {
    std::string target;
    std::string adapter;
    std::vector<std::string> prompts;  ///< five or more
    double share_min = 0.5;            ///< from here on a request is its
};

class Specialists {
public:
    /// Errors: invalid_request (too few prompts).
    static Result<std::unique_ptr<Specialists>> make(std::vector<SpecialistPrompts> declared);
    virtual ~Specialists() = default;

    virtual const std::vector<SpecialistPrompts>& declared() const noexcept = 0;
    /// The probability that what the caller asks now is for each. shape: [declared]
    virtual std::vector<double> shares(const domain::Request& request) const = 0;
};

/// What the caller asks now: the last turn of a user, or what there is instead. Empty: nothing.
std::string asked_text(const domain::Request& request);

}  // namespace molly::annotate
