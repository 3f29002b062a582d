#pragma once
// Whose request starts next: members share the engine by tokens, not by who asks most often. Pure;
// one thread at a time.
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace molly::engine {

/// Virtual token counters (Sheng et al., 2024): a member's counter grows by the tokens computed for
/// it, and who has had least goes first. Who was away comes back at the level of those who stayed,
/// so that nobody saves up.
class FairShare {
public:
    void served(const std::string& member, std::uint64_t tokens) { counters_[member] += tokens; }

    /// The place in `waiting` (members, in the order in which they came) whose turn it is;
    /// `running` are the members that are being served now. `waiting` is not empty.
    std::size_t pick(std::span<const std::string* const> waiting,
                     std::span<const std::string* const> running);

private:
    std::map<std::string, std::uint64_t> counters_;  // of who waits or runs
};

}  // namespace molly::engine
