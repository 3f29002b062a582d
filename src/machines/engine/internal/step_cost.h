#pragma once
// What a step costs. llama.cpp computes a batch in passes: one for each run of neighbouring places
// of the context, with equally many rows of each, and every pass reads all weights. Pure.
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace molly::engine {

/// Rows of each pass that a batch is computed in. shape of `rows`: [places]; 0: takes no part
std::vector<std::uint32_t> passes_of(std::span<const std::uint32_t> rows);

/// Milliseconds of a pass by its rows, as measured while the engine runs.
class StepCost {
public:
    /// Of one pass: what was seen, between two that were seen a line. More rows than were ever seen
    /// are taken to cost no more, so that somebody tries them. 0: nothing was seen yet.
    double of(std::uint32_t rows) const;
    double of_all(std::span<const std::uint32_t> passes) const;
    /// A step of these passes took so long.
    void took(std::span<const std::uint32_t> passes, double milliseconds);

private:
    static constexpr std::size_t exact = 32;    // rows that have a number of their own
    static constexpr std::size_t buckets = 72;  // four for each doubling beyond
    static std::size_t bucket_of(std::uint32_t rows);
    static double rows_of(std::size_t bucket);

    std::array<double, buckets> milliseconds_{};  // 0: not seen
};

/// Places between the running ones that should compute a row for nobody, so that the others share a
/// pass: those whose row costs less than another pass. `may_fill` says whether a place can; `rows`
/// as above.
std::vector<std::size_t> holes_to_fill(std::span<const std::uint32_t> rows, const StepCost& cost,
                                       const std::function<bool(std::size_t)>& may_fill);

}  // namespace molly::engine
