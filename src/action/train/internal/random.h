#pragma once
// Numbers that depend on a seed and a counter alone (splitmix64), so that a resumed run draws what
// an uninterrupted one would have drawn. Pure.
#include <cmath>
#include <cstdint>
#include <numbers>

namespace molly::train {

class Random {
public:
    explicit Random(std::uint64_t seed, std::uint64_t stream = 0)
        : state_(mix(seed) ^ mix(stream + 0x51ED2701ULL)) {}

    std::uint64_t next() {
        state_ += 0x9E3779B97F4A7C15ULL;
        return mix(state_);
    }
    /// In [0, bound); the bias of the remainder is below 2^-32 for bounds up to 2^32.
    std::uint64_t below(std::uint64_t bound) { return next() % bound; }
    /// In [0, 1).
    double uniform() { return static_cast<double>(next() >> 11U) * 0x1p-53; }
    /// Standard normal (Box and Muller).
    double normal() {
        const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
        return radius * std::cos(2.0 * std::numbers::pi * uniform());
    }

    static std::uint64_t mix(std::uint64_t x) {
        x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9ULL;
        x = (x ^ (x >> 27U)) * 0x94D049BB133111EBULL;
        return x ^ (x >> 31U);
    }

private:
    std::uint64_t state_;
};

}  // namespace molly::train
