#pragma once
// How good is each (target, adapter) at each field and difficulty? Moving averages with their
// weight of evidence, believed the less the thinner and the older the evidence is. Safe from any
// thread.
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
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

/// A moving average of judged answers with its weight of evidence.
struct Average {
    double mean = 0;
    double weight = 0;  ///< at `updated`
    WallTime updated;

    /// Its weight as of `now`.
    double faded(const EstimateOptions& options, WallTime now) const noexcept;
    void add(double score, double by, const EstimateOptions& options, WallTime now) noexcept;
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
    using Bands = std::array<std::array<Average, domain::bands_count>, domain::fields_count>;
    struct Cells {
        std::string adapter;
        Bands bands;
    };
    using Adapters = std::vector<std::unique_ptr<Cells>>;  // by name

public:
    Estimates(EstimateOptions options, Clock& clock) : options_(options), clock_(clock) {}

    /// Beliefs for one request, of many candidates: what they have in common is looked up once.
    /// Nobody learns while it lives.
    class Reading {
    public:
        Reading(const Estimates& from, const domain::CapabilityProfile& needs);
        /// Turns to this target.
        void open(const domain::TargetSpec& target);
        /// Of an adapter of the target that is open. `declared` are the target's declarations of
        /// it; `only`: the one that all of the request is of, whatever its field.
        Belief at(std::string_view adapter, std::span<const domain::Specialist> declared,
                  const domain::Specialist* only = nullptr);

    private:
        const EstimateOptions& options_;
        const Estimates& from_;
        std::scoped_lock<std::mutex> lock_;
        WallTime now_;
        std::size_t band_;
        std::array<std::pair<std::size_t, double>, domain::fields_count> shares_{};
        std::size_t shares_count_ = 0;
        const domain::TargetSpec* target_ = nullptr;
        const Adapters* adapters_ = nullptr;
        std::size_t next_ = 0;
    };

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
    Bands& bands_of(const std::string& target, const std::string& adapter);

    EstimateOptions options_;
    Clock& clock_;
    mutable std::mutex mutex_;
    std::map<std::string, Adapters, std::less<>> seen_;
};

/// The prior of a specialist of this field among `declared`, else that of the target.
double prior_in(const domain::TargetSpec& target, std::span<const domain::Specialist> declared,
                domain::Field field) noexcept;

}  // namespace molly::router
