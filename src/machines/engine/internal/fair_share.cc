#include "engine/internal/fair_share.h"

#include <algorithm>
#include <set>

namespace molly::engine {

std::size_t FairShare::pick(std::span<const std::string* const> waiting,
                            std::span<const std::string* const> running) {
    std::set<std::string> here;
    for (const auto& list : {waiting, running})
        for (const std::string* member : list)
            here.insert(*member);
    std::erase_if(counters_, [&](const auto& entry) { return !here.contains(entry.first); });
    std::uint64_t least = UINT64_MAX;
    for (const auto& entry : counters_)
        least = std::min(least, entry.second);
    for (const std::string& member : here)
        counters_.try_emplace(member, least == UINT64_MAX ? 0 : least);
    std::size_t first = 0;
    for (std::size_t i = 1; i < waiting.size(); ++i)
        if (counters_.at(*waiting[i]) < counters_.at(*waiting[first])) first = i;
    return first;
}

}  // namespace molly::engine
