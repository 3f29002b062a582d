#pragma once
// How sure a reading may be: heads of the classifier made honest on rows that trained no weight.
// Pure; deterministic.
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "profile/training.h"

namespace molly::profile {

/// What is seen of a text besides its features: one, its length, how rare its features are.
inline constexpr std::size_t signs_count = 3;
using Signs = std::array<float, signs_count>;
/// `features` of a text whose mean inverse document frequency is `rarity`.
Signs signs_of(std::size_t features, float rarity) noexcept;

/// And what tells that a text is of no known kind: one, the head's own logit, length, rarity, the
/// largest share of a topic, the share of the field `other`.
inline constexpr std::size_t scope_signs_count = 6;
using ScopeSigns = std::array<float, scope_signs_count>;

/// One choice out of several: the logits are multiplied by exp(slopes . signs), then the group's
/// bias is added.
struct Choice {
    Signs slopes{};
    std::vector<float> bias;  ///< shape: [groups]; empty: none

    float factor(const Signs& signs) const noexcept;
};

/// A row whose right group is known.
struct ChoiceRow {
    std::vector<float> logits;
    Signs signs{};
    std::uint8_t right = 0;  ///< group
    float weight = 1;
};

struct ScopeRow {
    ScopeSigns signs{};
    bool outside = false;
    float weight = 1;
};

/// Shares of the groups of one row, in the order of the groups. `group_of` has one entry a logit.
std::vector<float> shares_of(const Choice& choice, std::span<const std::uint8_t> group_of,
                             std::size_t groups, const ChoiceRow& row);

/// The simplest form (a temperature; one that follows the signs; the same with a bias for each
/// group) of the least loss in a five-fold cross-validation, fitted on all rows then.
Choice fit_choice(std::span<const ChoiceRow> rows, std::span<const std::uint8_t> group_of,
                  std::size_t groups, Honesty& held_out);

/// Logistic regression over the signs, likewise cross-validated.
ScopeSigns fit_scope(std::span<const ScopeRow> rows, Honesty& held_out);

}  // namespace molly::profile
