#pragma once
// How good is each (target, adapter) at each field and difficulty? Moving averages with their
// weight of evidence, believed the less the thinner and the older the evidence is. Safe from any
// thread.
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "domain/capability.h"
#include "domain/target.h"

namespace molly::router {

struct EstimateOptions {
    double prior_weight = 12;  ///< judged answers that a declaration is worth
    double weight_max = 200;   ///< evidence beyond makes room for newer: the average moves on
    double doubt = 1;          ///< standard errors between the average and what competes
    std::chrono::hours half_life{24 * 60};  ///< of evidence that nothing renews
};

/// What was seen of one (target, adapter) in one field and band.
struct EstimateRow {
    std::string target;
    std::string adapter;
    domain::Field field = domain::Field::other;
    domain::Band band = domain::Band::easy;
    double mean = 0;    ///< in [0, 1]
    double weight = 0;  ///< at `updated`
    WallTime updated;
};

/// What is believed of a candidate for one request.
struct Belief {
    double mean = 0;
    double lower = 0;     ///< what competes; the declaration itself while nothing was seen
    double evidence = 0;  ///< weight of what was seen
};

class Estimates {
public:
    Estimates(EstimateOptions options, Clock& clock) : options_(options), clock_(clock) {}

    /// Over the fields that the request may be of, at its difficulty.
    Belief at(const domain::TargetSpec& target, const std::string& adapter,
              const domain::CapabilityProfile& needs) const;
    /// A score in [0, 1] of one answer, with the weight of its judge; spread over the request's
    /// fields. Gives the rows that changed.
    std::vector<EstimateRow> learn(const std::string& target, const std::string& adapter,
                                   const domain::CapabilityProfile& needs, double score,
                                   double weight);
    /// Adds `weight` of evidence with this mean, as an evaluation or an imported table has it.
    EstimateRow learn(const EstimateRow& seen);
    void load(const std::vector<EstimateRow>& rows);
    /// With their weights as of now.
    std::vector<EstimateRow> rows() const;

private:
    struct Seen {
        double mean = 0;
        double weight = 0;
        WallTime updated;
    };
    using Bands = std::array<std::array<Seen, domain::bands_count>, domain::fields_count>;
    double faded(const Seen& seen, WallTime now) const;
    void add(Seen& seen, double score, double weight, WallTime now) const;

    EstimateOptions options_;
    Clock& clock_;
    mutable std::mutex mutex_;
    std::map<std::pair<std::string, std::string>, Bands> seen_;
};

/// The prior of a specialist of this field, else that of the target.
double prior_of(const domain::TargetSpec& target, const std::string& adapter, domain::Field field);

}  // namespace molly::router
