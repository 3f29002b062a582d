#pragma once
// What the free places of the context still hold: the keys and values of ended requests, used again
// by a request with the same beginning, the same adapter and the same member. Pure.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <llama.h>

namespace molly::engine {

/// The content of one place of the context.
struct KeptPrefix {
    std::string key;                  ///< see prefix_key; two keys never share
    std::vector<llama_token> tokens;  ///< in the order of their positions
    std::uint64_t used = 0;           ///< when it was used last, in requests; 0: empty
};

/// An adapter's content at one strength.
struct ScaledHash {
    std::string hash;
    float scale = 1;
};

/// Everything but the tokens that keys and values depend on, or that must not be mixed.
/// `adapters` are in one order.
std::string prefix_key(std::span<const ScaledHash> adapters, const std::string& member);

struct PlaceChoice {
    std::size_t place = 0;
    std::uint32_t reused = 0;  ///< tokens at the beginning that need not be computed again
};

/// Lengths are multiples of this, so that what follows is computed in the same groups of rows as in
/// a cold place, and its last token is always computed.
inline constexpr std::uint32_t prefix_step = 64;

/// Tokens that both begin with, in whole steps and without the prompt's last one.
std::uint32_t common_steps(std::span<const llama_token> tokens,
                           std::span<const llama_token> prompt);

/// The place with the longest common beginning, else the one used longest ago. `free` has at least
/// one place. Too short a beginning is not worth losing a longer one that somebody else may want:
/// then the place used longest ago is taken.
PlaceChoice choose_place(std::span<const KeptPrefix> kept, std::span<const std::size_t> free,
                         const std::string& key, std::span<const llama_token> prompt);

}  // namespace molly::engine
