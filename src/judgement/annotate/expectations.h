#pragma once
// How well will each of several models answer this very request? A predictor that learned from a
// table of scores says so from the text alone. Immutable; safe from any thread.
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "domain/request.h"

namespace molly::annotate {

class Expectations {
public:
    /// From the bytes of a file that `molly eval router TABLE --save FILE` wrote. Errors: corrupt.
    static Result<std::unique_ptr<Expectations>> make(std::string_view bytes);
    virtual ~Expectations() = default;

    /// The columns of the table: `target`, or `target/adapter`.
    virtual const std::vector<std::string>& models() const noexcept = 0;
    /// The score that each is expected to get, in [0, 1]; nothing of a request without text.
    /// shape: [models]
    virtual std::vector<double> of(const domain::Request& request) const = 0;
};

}  // namespace molly::annotate
