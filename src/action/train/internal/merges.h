#pragma once
// Learns byte-pair merges from counted words: pair counts are kept up to date in place and a heap
// finds the next pair, so that the cost of a merge is that of the words it touches. Pure.
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace molly::train {

struct LearnedMerges {
    std::vector<std::string> bytes;  ///< the first 256 are the bytes themselves
    std::vector<std::pair<std::int32_t, std::int32_t>> merges;
};

using WordCounts = std::unordered_map<std::string, std::uint64_t>;

/// Merges until there are `tokens` of them or no pair occurs twice. Of pairs that are as frequent
/// the one with the smaller ids comes first. `progress` gets the tokens made.
LearnedMerges learn_merges(const WordCounts& words, std::size_t tokens,
                           const std::function<void(std::size_t)>& progress);

}  // namespace molly::train
