#pragma once
// What the next forward pass runs with: adapters by sequence.
#include <string_view>
#include <vector>

#include "engine/internal/hot_adapter.h"

namespace molly::engine {

/// An adapter that one sequence runs with in the next forward pass.
struct AdapterStep {
    const HotAdapter* adapter = nullptr;
    float scale = 1;
    std::string_view hash;  ///< of its content: deltas add up in this order, in any company

    bool operator==(const AdapterStep& other) const noexcept {
        return adapter == other.adapter && scale == other.scale;
    }
};
/// All adapters of one sequence, by hash; none: the base alone.
using AdapterMix = std::vector<AdapterStep>;

}  // namespace molly::engine
