#pragma once
// Weighs the candidates of one request against its limits and each other. Everything that it reads
// outlives it. Pure.
#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "router/internal/weighed.h"

namespace molly::router {

/// The adapter that a request asks for by name; empty: none.
const std::string& adapter_of(const policy::ClearedRequest& cleared, const Wanted& wanted);

class Planner {
public:
    Planner(const policy::ClearedRequest& cleared, const Wanted& wanted, const Options& options,
            const Roster& roster, const Moment& moment, std::span<const SpecialistShare> shares,
            std::span<const Expectation> expected);

    domain::Mode mode() const noexcept { return mode_; }
    /// The candidates: the adapter asked for at each target, or the bare models and the
    /// specialists that are there.
    std::vector<Weighed> weigh() const;
    Plan::Step step(const Weighed& one) const;
    /// Where the request is nobody's alone: marks the specialists that are asked together, so that
    /// they stand before all others. Their number.
    std::size_t mix(std::vector<Weighed>& all) const;
    domain::Candidate told(const Weighed& one) const;
    /// Steps of a preferred target come first, then specialists, then a mixture, then the higher
    /// score; ties go to the less exposed.
    bool before(const Weighed& a, const Weighed& b) const noexcept {
        if (a.rank != b.rank) return a.rank < b.rank;
        if (a.place != b.place) return a.place < b.place;
        if (a.score != b.score) return a.score > b.score;
        return pair_of(a).order < pair_of(b).order;
    }
    /// What keeps a candidate out, in words; empty when nothing does.
    std::string words(const Weighed& one) const;
    const domain::TargetSpec& spec_of(const Weighed& one) const noexcept {
        return roster_.spec_of(pair_of(one));
    }

private:
    /// What holds of a target whatever its adapter.
    struct Terms {
        Stage stage = Stage::admitted;
        domain::Money cost;
        std::chrono::milliseconds latency{0};
        double penalty = 0;  // of the score
        bool preferred = false;
        bool scoped = false;  // the key may not use everything there
    };
    /// What a pair was declared for, as far as it concerns this request.
    struct Declared {
        const domain::Specialist* one = nullptr;
        bool by_prompts = false;  // all of the request is its, whatever the field
    };
    /// What example prompts say of a pair.
    enum class Prompted : std::uint8_t { nothing, not_its, its };
    struct Weights {
        double cost = 0;
        double latency = 0;
    };

    static Weights weights_of(domain::Mode mode) noexcept;
    const Roster::Pair& pair_of(const Weighed& one) const noexcept {
        return roster_.pairs()[one.pair];
    }
    const Terms& terms_of(const Weighed& one) const noexcept { return terms_[pair_of(one).target]; }
    struct Part {
        double weight = 0;   // share of the request that is in its fields
        double quality = 0;  // in those
    };
    Part part_of(const Weighed& one) const;
    bool mixes() const noexcept;
    bool pinned() const noexcept {
        return !wanted_.target.empty() && !wanted_.aliased && !options_.named_falls_back;
    }
    void read_beliefs();
    void read_prompts(std::span<const SpecialistShare> shares);
    void read_expectations(std::span<const Expectation> expected);
    void expect(std::size_t pair, Belief& belief) const;
    void read_terms();
    Terms terms_of(std::size_t target) const;
    Stage stage_of(const Roster::Facts& facts, const Live& live, const Terms& terms) const;
    void weigh_target(std::size_t target, std::vector<Weighed>& out) const;
    double lower_of(std::size_t pair, const Declared& declared) const;
    Declared declared_of(std::size_t pair) const noexcept;
    Belief belief_of(std::size_t pair, const Declared& declared) const;
    Stage stage_at(std::size_t pair, const Declared& declared, const Terms& terms) const;
    bool beyond(const domain::Specialist& one) const noexcept;
    std::string beyond_words(const domain::Specialist& one) const;
    std::string refusal(const Weighed& one) const;
    std::chrono::milliseconds latency(const Roster::Facts& facts, const Live& live) const;
    bool able(const domain::Capabilities& can) const noexcept;
    std::string_view lacks(const domain::Capabilities& can) const;

    const policy::ClearedRequest& cleared_;
    const domain::Request& request_;
    const domain::CapabilityProfile& needs_;
    const Wanted& wanted_;
    const std::string& adapter_;
    const Options& options_;
    const Roster& roster_;
    const Moment& moment_;
    std::size_t field_;
    domain::TierSet tiers_;
    domain::Mode mode_;
    Weights weights_;
    bool spread_;  // the request may be of several domains, none of them likely
    FieldMix mix_;
    std::array<std::shared_ptr<const std::vector<Belief>>, domain::fields_count> columns_;
    std::array<const Belief*, domain::fields_count> beliefs_{};  // those of the columns
    double per_cost_ = 0;                                        // of the score, for a billionth
    double per_latency_ = 0;                                     // of the score, for a millisecond
    std::vector<bool> permitted_;                                // shape: [places]
    std::vector<double> expected_;    // of each pair, below 0: nothing; shape: [pairs], or nothing
    std::vector<Prompted> prompted_;  // shape: [pairs], or nothing
    std::vector<Terms> terms_;        // shape: [targets]
};

}  // namespace molly::router
