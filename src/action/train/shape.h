#pragma once
// What a llama-architecture decoder looks like, and the presets that `molly train base` offers.
// Pure.
#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"

namespace molly::train {

/// Sizes of one decoder (RMSNorm, RoPE, grouped-query attention, SwiGLU).
struct Shape {
    std::uint32_t vocabulary = 0;  ///< tokens, special ones included
    std::uint32_t embed = 0;
    std::uint32_t layers = 0;
    std::uint32_t heads = 0;
    std::uint32_t key_heads = 0;  ///< heads of keys and values; divides `heads`
    std::uint32_t feed_forward = 0;
    std::uint32_t context = 256;  ///< tokens of one training sequence
    bool tied = true;             ///< the output head is the embedding table
    float rope_base = 10'000.0F;
    float norm_epsilon = 1e-5F;

    std::uint32_t head_width() const noexcept { return embed / heads; }
    std::uint32_t key_width() const noexcept { return key_heads * head_width(); }
    /// Weights of the whole model.
    std::uint64_t parameters() const noexcept;
    /// Floating-point operations of forward and backward for one token: 6 for each weight that
    /// multiplies, 6 * embed * context for causal attention in every layer.
    double flop_per_token() const noexcept;
    /// Errors: invalid_request, when the sizes do not fit together.
    Result<void> check() const;

    bool operator==(const Shape&) const = default;
};

/// A shape with a name, and the sequences of one step that suit it.
struct Preset {
    std::string_view name;
    Shape shape;                  ///< its vocabulary is the one that suits it
    std::uint32_t batch = 8;      ///< sequences of one step
    float learning_rate = 1e-3F;  ///< at its peak
};

/// All presets, smallest first.
std::span<const Preset> presets() noexcept;
/// Errors: not_found, which lists the names.
Result<Preset> find_preset(std::string_view name);

}  // namespace molly::train
