#pragma once
// Reproducible chance (SplitMix64): the same on every machine, and quick to seed.
#include <cstdint>
#include <string>
#include <vector>

namespace molly::simulation {

class Random {
public:
    explicit Random(std::uint64_t seed) : state_(seed) {}

    std::uint64_t next() noexcept {
        state_ += 0x9E3779B97F4A7C15ULL;
        std::uint64_t z = state_;
        z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9ULL;
        z = (z ^ (z >> 27U)) * 0x94D049BB133111EBULL;
        return z ^ (z >> 31U);
    }
    /// 0 to `limit` - 1.
    std::size_t below(std::size_t limit) noexcept {
        return static_cast<std::size_t>(next() % limit);
    }
    /// `low` to `high`, both included.
    std::size_t between(std::size_t low, std::size_t high) noexcept {
        return low + below(high - low + 1);
    }
    bool chance(std::uint32_t percent) noexcept { return below(100) < percent; }
    template <class T>
    const T& one_of(const std::vector<T>& all) noexcept {
        return all[below(all.size())];
    }
    /// Letters and digits, which no encoding changes.
    std::string word(std::size_t length) {
        static constexpr char characters[] = "0123456789abcdefghijklmnopqrstuvwxyz";
        std::string text;
        for (std::size_t i = 0; i < length; ++i)
            text += characters[below(36)];
        return text;
    }

private:
    std::uint64_t state_;
};

}  // namespace molly::simulation
