#pragma once
// Which adapter is worth its memory least. Pure; one thread at a time.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

namespace molly::engine {

/// Estimates how likely each key comes again: one for every request for it, halved with every
/// `half_life` requests for anything (LRFU; Lee et al., 2001). Recency and frequency in one number,
/// kept for what is not in memory too.
class Reuse {
public:
    explicit Reuse(double half_life = 512) : half_life_(half_life) {}

    void asked(const std::string& key);
    double likelihood(const std::string& key) const;
    /// What losing it costs per byte that it frees: likelihood times the time to load it again.
    double worth(const std::string& key, double load_ms, std::size_t bytes) const {
        return likelihood(key) * load_ms / static_cast<double>(bytes);
    }

private:
    struct Seen {
        double value = 0;
        std::uint64_t when = 0;
    };
    double now(const Seen& seen) const;
    void forget_faint();

    double half_life_;
    std::uint64_t clock_ = 0;  // requests so far
    std::unordered_map<std::string, Seen> seen_;
};

}  // namespace molly::engine
