#pragma once
// How sure is a target of an answer, and what was that worth? Log-probabilities become one number,
// and judged answers tell how often an answer of that number was good. Safe from any thread.
#include <array>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
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

/// Judged answers of one (target, adapter) in one field whose sureness fell into one bin.
struct SureRow {
    std::string target;
    std::string adapter;
    domain::Field field = domain::Field::other;
    std::uint32_t bin = 0;
    double mean = 0;  ///< of their scores
    double weight = 0;
    WallTime updated;
};

/// The bin of a sureness.
std::uint32_t bin_of(double sureness) noexcept;
/// `sure7`: how a bin is called where rows are kept; and back.
std::string band_name(std::uint32_t bin);
std::optional<std::uint32_t> bin_from(std::string_view band) noexcept;

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
    double at(const std::string& target, const std::string& adapter, domain::Field field,
              double sureness) const;
    /// Gives the row that changed.
    SureRow learn(const std::string& target, const std::string& adapter, domain::Field field,
                  double sureness, double score, double weight);
    void load(const std::vector<SureRow>& rows);
    std::vector<SureRow> rows() const;
    /// The lowest line above which answers were good at least as often as `precision`, with 95 %
    /// certainty; over all fields without one. Nothing: no line does, or too little was judged.
    std::optional<Threshold> choose(const std::string& target, const std::string& adapter,
                                    std::optional<domain::Field> field, double precision) const;

private:
    using Line = std::array<Average, bins>;
    using Lines = std::array<Line, domain::fields_count>;
    using Curve = std::array<double, bins>;
    Curve curve(const Lines* lines, std::optional<domain::Field> field, WallTime now) const;

    EstimateOptions options_;
    Clock& clock_;
    mutable std::mutex mutex_;
    std::map<std::pair<std::string, std::string>, Lines> seen_;
};

}  // namespace molly::router
