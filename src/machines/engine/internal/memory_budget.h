#pragma once
// One budget for all memory that comes and goes while the engine runs: keys and values of running
// requests, prefixes that are kept, and adapters. Safe from any thread.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <mutex>

namespace molly::engine {

/// Worth of what is not there: it never goes first.
inline constexpr double nothing_to_lose = std::numeric_limits<double>::infinity();

class MemoryBudget {
public:
    explicit MemoryBudget(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}
    MemoryBudget(const MemoryBudget&) = delete;
    MemoryBudget& operator=(const MemoryBudget&) = delete;
    ~MemoryBudget() = default;

    /// All or nothing.
    bool take(std::uint64_t bytes) {
        const std::scoped_lock lock(mutex_);
        if (used_ + bytes > bytes_max_) return false;
        used_ += bytes;
        return true;
    }
    /// As many whole units as there are, up to `most` of them.
    std::uint64_t take_units(std::uint64_t unit, std::uint64_t most) {
        const std::scoped_lock lock(mutex_);
        const std::uint64_t left = bytes_max_ - std::min(bytes_max_, used_);
        const std::uint64_t units = std::min(most, left / unit);
        used_ += units * unit;
        return units;
    }
    /// What lies in memory whether there is room or not.
    void charge(std::uint64_t bytes) {
        const std::scoped_lock lock(mutex_);
        used_ += bytes;
    }
    void give_back(std::uint64_t bytes) {
        const std::scoped_lock lock(mutex_);
        used_ -= std::min(used_, bytes);
    }
    std::uint64_t used() const {
        const std::scoped_lock lock(mutex_);
        return used_;
    }
    std::uint64_t bytes_max() const noexcept { return bytes_max_; }

    /// While a request that runs takes the memory that others let go for it, adapters that wait
    /// take none.
    class Claim {
    public:
        explicit Claim(MemoryBudget& budget) : budget_(budget) { budget_.claimed_ = true; }
        Claim(const Claim&) = delete;
        Claim& operator=(const Claim&) = delete;
        ~Claim() { budget_.claimed_ = false; }

    private:
        MemoryBudget& budget_;
    };
    bool claimed() const noexcept { return claimed_; }

    /// What the adapters wait for, so that the engine thread drops prefixes for it. 0: nothing.
    void wish(std::uint64_t bytes) noexcept { wished_.store(bytes, std::memory_order_release); }
    std::uint64_t wished() const noexcept { return wished_.load(std::memory_order_acquire); }
    /// The worth of the prefix that would go first, as the engine thread sees it.
    void set_prefix_worth(double worth) noexcept { prefix_worth_ = worth; }
    double prefix_worth() const noexcept { return prefix_worth_; }

private:
    const std::uint64_t bytes_max_;
    mutable std::mutex mutex_;
    std::uint64_t used_ = 0;
    std::atomic<bool> claimed_ = false;
    std::atomic<std::uint64_t> wished_ = 0;
    std::atomic<double> prefix_worth_ = nothing_to_lose;
};

}  // namespace molly::engine
