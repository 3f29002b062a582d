#include "engine/internal/kept_prefix.h"

#include <algorithm>

#include <fmt/format.h>

namespace molly::engine {
namespace {

std::uint32_t common(const KeptPrefix& kept, const std::string& key,
                     std::span<const llama_token> prompt) {
    return kept.used == 0 || kept.key != key ? 0 : common_steps(kept.tokens, prompt);
}

}  // namespace

std::uint32_t common_steps(std::span<const llama_token> tokens,
                           std::span<const llama_token> prompt) {
    if (prompt.empty()) return 0;
    const auto end = std::ranges::mismatch(tokens, prompt.first(prompt.size() - 1)).in1;
    const auto same = static_cast<std::uint32_t>(end - tokens.begin());
    return same / prefix_step * prefix_step;
}

std::string prefix_key(std::span<const ScaledHash> adapters, const std::string& member) {
    std::string key;
    for (const ScaledHash& adapter : adapters)
        key += fmt::format("{}*{} ", adapter.hash, adapter.scale);
    return key + "| " + member;
}

PlaceChoice choose_place(std::span<const KeptPrefix> kept, std::span<const std::size_t> free,
                         const std::string& key, std::span<const llama_token> prompt) {
    PlaceChoice best{.place = free.front(), .reused = 0};
    std::size_t oldest = free.front();
    for (const std::size_t place : free) {
        const std::uint32_t reused = common(kept[place], key, prompt);
        if (reused > best.reused) best = {.place = place, .reused = reused};
        if (kept[place].used < kept[oldest].used) oldest = place;
    }
    if (best.reused == 0) return {.place = oldest, .reused = 0};
    // A quarter of the other's text is kept, or the whole of an empty place is taken instead.
    const bool wasteful = best.reused * 4 < kept[best.place].tokens.size() && best.place != oldest;
    if (wasteful && kept[oldest].used == 0) return {.place = oldest, .reused = 0};
    return best;
}

}  // namespace molly::engine
