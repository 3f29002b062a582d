#pragma once
// Who controls a place that can answer. Pure values.
#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace molly::domain {

/// T0 this device, T1 this local network, T2 a remote machine that the user controls, T3 somebody
/// else.
enum class Tier : std::uint8_t { t0, t1, t2, t3 };

inline constexpr std::array<Tier, 4> all_tiers = {Tier::t0, Tier::t1, Tier::t2, Tier::t3};

std::string_view to_string(Tier tier) noexcept;  ///< "T0" to "T3"
std::optional<Tier> tier_from(std::string_view text) noexcept;

/// A set of tiers.
class TierSet {
public:
    constexpr TierSet() = default;
    constexpr TierSet(std::initializer_list<Tier> tiers) {
        for (const Tier tier : tiers)
            bits_ = static_cast<std::uint8_t>(bits_ | bit(tier));
    }
    constexpr bool contains(Tier tier) const noexcept { return (bits_ & bit(tier)) != 0; }
    constexpr bool empty() const noexcept { return bits_ == 0; }
    constexpr TierSet operator&(TierSet other) const noexcept {
        TierSet both;
        both.bits_ = static_cast<std::uint8_t>(bits_ & other.bits_);
        return both;
    }
    constexpr TierSet operator|(TierSet other) const noexcept {
        TierSet either;
        either.bits_ = static_cast<std::uint8_t>(bits_ | other.bits_);
        return either;
    }
    constexpr bool operator==(const TierSet&) const = default;

private:
    static constexpr std::uint8_t bit(Tier tier) {
        return static_cast<std::uint8_t>(1U << static_cast<unsigned>(tier));
    }
    std::uint8_t bits_ = 0;
};

/// "T0 T1", lowest first.
std::string to_string(TierSet tiers);

}  // namespace molly::domain
