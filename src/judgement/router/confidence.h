#pragma once
// How sure is a target of an answer, and what was that worth? Log-probabilities become one number,
// and judged answers tell how often an answer of that number was good. Safe from any thread.
#include <array>
#include <compare>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "domain/capability.h"
#include "domain/response.h"
#include "domain/target.h"
#include "router/estimates.h"

namespace molly::router {

/// The geometric mean of the tokens' probabilities, half of it over the least likely tenth of them:
/// one wild guess in a long answer shows. Nothing without log-probabilities.
std::optional<double> sureness_of(std::span<const domain::TokenLogprob> tokens);

/// Whose answers they are, and where the numbers come from: two sources mean different things by
/// one number, so what was learned of one says nothing of another.
struct Meter {
    std::string target = {};
    std::string adapter = {};
    domain::ConfidenceSource from = domain::ConfidenceSource::logprobs;

    auto operator<=>(const Meter&) const = default;
};

/// Judged answers of one meter in one field whose sureness fell into one bin.
struct SureRow {
    Meter meter;
    domain::Field field = domain::Field::other;
    std::uint32_t bin = 0;
    double mean = 0;  ///< of their scores
    double weight = 0;
    WallTime updated;
};

/// The bin of a sureness.
std::uint32_t bin_of(double sureness) noexcept;
/// `sure7`, or with another source than log-probabilities `sure7:verifier`: how rows of a bin are
/// called where they are kept; and back.
std::string band_name(domain::ConfidenceSource from, std::uint32_t bin);
struct SureBand {
    domain::ConfidenceSource from = domain::ConfidenceSource::logprobs;
    std::uint32_t bin = 0;

    bool operator==(const SureBand&) const = default;
};
std::optional<SureBand> sure_band_from(std::string_view band) noexcept;

/// Where to draw the line, as judged answers say.
struct Threshold {
    double confidence_min = 0;  ///< for the configuration
    double precision = 0;       ///< mean score of the answers that it lets through
    double lower = 0;           ///< its lower bound, at 95 %
    double accepted = 0;        ///< share of the answers that it lets through
    double evidence = 0;        ///< weight of the judged answers
};

/// What it costs to ask `verifier` what an answer to such a request is worth, as estimated before.
domain::Money verification_cost(const domain::CapabilityProfile& needs,
                                const domain::TargetSpec& verifier) noexcept;

class Confidences {
public:
    static constexpr std::uint32_t bins = 10;

    Confidences(EstimateOptions options, Clock& clock) : options_(options), clock_(clock) {}

    /// The probability that an answer of this sureness is good. While nothing was judged the
    /// sureness is taken at its word; it never falls as the sureness rises.
    double at(const Meter& meter, domain::Field field, double sureness) const;
    /// Gives the row that changed.
    SureRow learn(const Meter& meter, domain::Field field, double sureness, double score,
                  double weight);
    void load(const std::vector<SureRow>& rows);
    std::vector<SureRow> rows() const;
    /// The lowest line above which answers were good at least as often as `precision`, with 95 %
    /// certainty; over all fields without one. Nothing: no line does, or too little was judged.
    std::optional<Threshold> choose(const Meter& meter, std::optional<domain::Field> field,
                                    double precision) const;

private:
    using Line = std::array<Average, bins>;
    using Lines = std::array<Line, domain::fields_count>;
    using Curve = std::array<double, bins>;
    Curve curve(const Lines* lines, std::optional<domain::Field> field, WallTime now) const;

    EstimateOptions options_;
    Clock& clock_;
    mutable std::mutex mutex_;
    std::map<Meter, Lines> seen_;
};

}  // namespace molly::router
