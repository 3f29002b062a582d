#pragma once
// What a configuration offers: its (target, adapter) pairs, laid out once, so that a decision
// reads numbers. Immutable, but for beliefs that it keeps. Safe from any thread.
#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "domain/target.h"
#include "router/estimates.h"

namespace molly::router {

class Roster {
public:
    struct Pair {
        std::uint32_t target = 0;  ///< which of the targets
        /// Among all pairs by tier, target and adapter: equal scores stand in this order.
        std::uint32_t order = 0;
        std::string adapter;  ///< empty: the bare model
        std::span<const domain::Specialist> declared;
        /// Which of `declared` is for each field; `nobody` where none is.
        std::array<std::uint8_t, domain::fields_count> of_field{};
    };
    static constexpr std::uint8_t nobody = 0xFF;
    /// What a decision reads of each target's declaration, beside each other.
    struct Facts {
        double first_token_ms = 0;
        double token_ms = 0;
        domain::Prices prices;
        domain::Capabilities capabilities;
        domain::Tier tier = domain::Tier::t0;
        /// Targets of one tier and in the same places share one: a request's permit says the same
        /// of all of them.
        std::uint32_t place = 0;
    };

    /// The bare model of each target and the adapters of its specialists. `estimates` outlives it;
    /// null: declared qualities count.
    Roster(std::vector<std::shared_ptr<const domain::TargetSpec>> targets,
           const Estimates* estimates);
    /// One adapter, at each target.
    Roster(std::vector<std::shared_ptr<const domain::TargetSpec>> targets,
           const Estimates* estimates, const std::string& adapter);
    Roster(const Roster&) = delete;
    Roster& operator=(const Roster&) = delete;
    Roster(Roster&&) = delete;
    Roster& operator=(Roster&&) = delete;
    ~Roster() = default;

    std::span<const std::shared_ptr<const domain::TargetSpec>> targets() const noexcept {
        return targets_;
    }
    /// Those of one target stand together, in the order of the targets.
    std::span<const Pair> pairs() const noexcept { return pairs_; }
    /// The first pair of this target; of one beyond the last, the number of pairs.
    std::size_t first_of(std::size_t target) const noexcept { return first_[target]; }
    /// shape: [targets]
    std::span<const Facts> facts() const noexcept { return facts_; }
    /// One target of each place. shape: [places]
    std::span<const domain::TargetSpec* const> places() const noexcept { return places_; }
    const domain::TargetSpec& spec_of(const Pair& pair) const noexcept {
        return *targets_[pair.target];
    }
    /// Which pair that is; the number of pairs when there is none.
    std::size_t find(std::string_view target, std::string_view adapter) const noexcept;
    /// Whether any target is somebody else's.
    bool outside() const noexcept { return outside_; }

    /// The declared quality of a pair in one field.
    double prior(const Pair& pair, std::size_t field) const noexcept;
    /// What is believed of every pair in one field and band. shape: [pairs]
    std::shared_ptr<const std::vector<Belief>> beliefs(std::size_t field, std::size_t band) const;
    /// What is believed of one pair whose declaration holds whatever the field.
    Belief belief(std::size_t pair, const domain::CapabilityProfile& needs, double prior) const;

private:
    struct Column {
        std::uint64_t version = 0;
        WallTime hour;
        std::shared_ptr<const std::vector<Belief>> beliefs;
    };
    void add(std::uint32_t target, const std::string& adapter,
             std::span<const domain::Specialist> declared);
    void finish();
    void note_facts();

    std::vector<std::shared_ptr<const domain::TargetSpec>> targets_;
    const Estimates* estimates_;
    std::vector<Facts> facts_;
    std::vector<const domain::TargetSpec*> places_;
    std::vector<Pair> pairs_;
    std::vector<std::size_t> first_;
    std::vector<std::uint32_t> sorted_;  // pairs by target's id and adapter
    bool outside_ = false;
    mutable std::mutex mutex_;
    mutable Estimates::Links links_;
    mutable std::array<Column, domain::fields_count * domain::bands_count> columns_;
};

}  // namespace molly::router
