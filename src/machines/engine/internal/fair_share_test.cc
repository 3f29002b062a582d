#include "engine/internal/fair_share.h"

#include <deque>
#include <random>

#include <gtest/gtest.h>

namespace molly::engine {
namespace {

std::vector<const std::string*> pointers(const std::deque<std::string>& names) {
    std::vector<const std::string*> out;
    for (const std::string& name : names)
        out.push_back(&name);
    return out;
}

TEST(FairShare, OneMemberIsServedInOrder) {
    FairShare share;
    const std::deque<std::string> waiting = {"anna", "anna", "anna"};
    share.served("anna", 1000);
    EXPECT_EQ(share.pick(pointers(waiting), {}), 0U);
}

TEST(FairShare, WhoHasHadLeastGoesFirst) {
    FairShare share;
    const std::deque<std::string> running = {"anna", "bruno"};
    const std::deque<std::string> waiting = {"anna", "anna", "bruno"};
    share.served("anna", 500);
    share.served("bruno", 20);
    EXPECT_EQ(share.pick(pointers(waiting), pointers(running)), 2U);
}

TEST(FairShare, AnAbsenceSavesNothingUp) {
    FairShare share;
    const std::deque<std::string> anna = {"anna"};
    share.pick(pointers(anna), {});
    share.served("anna", 10'000);
    const std::deque<std::string> both = {"anna", "bruno"};
    EXPECT_EQ(share.pick(pointers(both), {}), 0U);  // bruno is new: at the same level, behind
    share.served("anna", 1);
    EXPECT_EQ(share.pick(pointers(both), {}), 1U);
}

// One member floods; the others get their share of tokens all the same, and nobody starves.
TEST(FairShare, AFloodDoesNotStarveTheOthers) {
    FairShare share;
    std::mt19937 random(3);
    std::deque<std::string> waiting(400, "flood");
    std::map<std::string, std::uint64_t> got;
    for (int turn = 0; turn < 300; ++turn) {
        if (turn % 3 == 0) waiting.emplace_back("anna");
        if (turn % 3 == 1) waiting.emplace_back("bruno");
        const auto names = pointers(waiting);
        const std::size_t at = share.pick(names, {});
        const std::string member = waiting[at];
        waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(at));
        const std::uint64_t tokens = 50 + random() % 100;
        share.served(member, tokens);
        got[member] += tokens;
    }
    EXPECT_GT(got["anna"] * 10, got["flood"] * 8);
    EXPECT_GT(got["bruno"] * 10, got["flood"] * 8);
}

}  // namespace
}  // namespace molly::engine
