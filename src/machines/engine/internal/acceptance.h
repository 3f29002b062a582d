#pragma once
// Whether drafting pays: how often drafted tokens are the ones that come, and what checking them
// costs. Pure.
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/internal/step_cost.h"

namespace molly::engine {

/// Where a draft comes from: they are right more or less often.
enum class DraftKind : std::uint8_t { copy_short, copy_middle, copy_long, model, elsewhere };
inline constexpr std::size_t draft_kinds = 5;

/// The kind of a copy after so many tokens that agree.
DraftKind copy_kind(std::uint32_t matched);

/// How likely a drafted token is the one that comes, when those before it were: an average in which
/// the latest count most.
class AcceptRates {
public:
    explicit AcceptRates(double fresh) : fresh_(fresh) {}
    /// Those of another, as a beginning.
    AcceptRates(const AcceptRates& from, double fresh) : fresh_(fresh), rates_(from.rates_) {}

    double of(DraftKind kind) const { return rates_[static_cast<std::size_t>(kind)]; }
    void saw(DraftKind kind, bool came) {
        double& rate = rates_[static_cast<std::size_t>(kind)];
        rate += fresh_ * ((came ? 1 : 0) - rate);
    }

private:
    double fresh_;
    std::array<double, draft_kinds> rates_{0.3, 0.6, 0.8, 0.6, 0.6};
};

/// Tokens of a draft that come, on average: rate + rate^2 + ... (Leviathan et al., 2023, equation
/// 1, without the token that comes in any case).
double expected_tokens(double rate, std::uint32_t length);

/// One sequence that might check a draft.
struct DraftOffer {
    std::size_t place = 0;
    std::uint32_t most = 0;  ///< tokens
    double rate = 0;
    bool by_model = false;  ///< drafting itself takes time
};

struct DraftChoice {
    std::vector<std::uint32_t> lengths;  ///< shape: [offers]
    double gain = 1;                     ///< tokens per second, over those without drafts
};

/// How many drafted tokens each sequence checks in a step that computes `rows` without drafts
/// (shape: [places]), so that most tokens come per second. `answering` rows bring a token in any
/// case; at most `room` rows more; a token of the draft model takes `model_ms`, for all sequences
/// together. Before anything is known of the cost, none.
DraftChoice choose_drafts(std::span<const std::uint32_t> rows, std::uint32_t answering,
                          std::span<const DraftOffer> offers, std::uint32_t room,
                          const StepCost& cost, double model_ms);

}  // namespace molly::engine
