#pragma once
// How good is each (target, adapter) at each field and difficulty? Moving averages with their
// weight of evidence, believed the less the thinner and the older the evidence is. Safe from any
// thread.
#include <array>
#include <atomic>
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

/// The fields that a request may be of, with shares that sum to one. What was not classified is
/// `other`, whole.
struct FieldMix {
    struct Part {
        std::size_t field = 0;
        double share = 0;
    };
    std::array<Part, domain::fields_count> parts{};
    std::size_t count = 0;

    std::span<const Part> all() const noexcept { return std::span(parts).first(count); }
};
FieldMix fields_of(const domain::CapabilityProfile& needs) noexcept;

class Estimates {
    using Bands = std::array<std::array<Average, domain::bands_count>, domain::fields_count>;
    struct Cells {
        std::string adapter;
        Bands bands;
    };
    using Adapters = std::vector<std::unique_ptr<Cells>>;  // by name

public:
    Estimates(EstimateOptions options, Clock& clock) : options_(options), clock_(clock) {}

    /// Where the cells of many (target, adapter) lie, so that nobody looks them up twice.
    struct Links {
        struct Name {
            std::string_view target;
            std::string_view adapter;
        };
        std::vector<Name> names;

    private:
        friend class Estimates;
        std::vector<const Cells*> cells;  // null: nothing was seen
        std::uint64_t known = ~std::uint64_t{0};
    };

    /// Grows whenever something is learned in this field and band.
    std::uint64_t version(std::size_t field, std::size_t band) const noexcept {
        return versions_[field][band].load(std::memory_order_acquire);
    }
    /// The hour that evidence has faded to; so long beliefs stay what they are.
    WallTime hour() const { return std::chrono::floor<std::chrono::hours>(clock_.wall()); }
    /// Beliefs in one field and band, as of this hour. shape: [names] in `priors`, [names] out
    std::vector<Belief> read(Links& links, std::size_t field, std::size_t band,
                             std::span<const double> priors) const;
    /// The belief of one of them over all fields that the request may be of, each with this prior.
    Belief read(const Links& links, std::size_t which, const domain::CapabilityProfile& needs,
                double prior) const;

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
    const Cells* find(std::string_view target, std::string_view adapter) const;
    Bands& bands_of(const std::string& target, const std::string& adapter);
    void changed(std::size_t field, std::size_t band) noexcept {
        versions_[field][band].fetch_add(1, std::memory_order_acq_rel);
    }

    EstimateOptions options_;
    Clock& clock_;
    mutable std::mutex mutex_;
    std::map<std::string, Adapters, std::less<>> seen_;
    std::uint64_t known_ = 0;  // pairs that have cells
    std::array<std::array<std::atomic<std::uint64_t>, domain::bands_count>, domain::fields_count>
        versions_{};
};

/// The prior of a specialist of this field among `declared`, else that of the target.
double prior_in(const domain::TargetSpec& target, std::span<const domain::Specialist> declared,
                domain::Field field) noexcept;

}  // namespace molly::router
