#include <cstdlib>
#include <cstring>
#include <string>

#include <fmt/format.h>

#include "simulation.h"

namespace {

constexpr const char* usage =
    "simulation [--seed N] [--worlds N]\n"
    "\n"
    "Plays the whole gateway in random worlds and prints every promise that was broken, with the\n"
    "seed that replays it. --seed is the first seed (default 1), --worlds how many follow\n"
    "(default 10000; 1 when a seed is given).\n";

}  // namespace

int main(int count, char** arguments) {
    std::uint64_t seed = 1;
    std::uint64_t worlds = 10'000;
    bool given = false;
    for (int i = 1; i < count; ++i) {
        const std::string name = arguments[i];
        if ((name != "--seed" && name != "--worlds") || i + 1 == count) {
            fmt::print("{}", usage);
            return name == "--help" ? 0 : 2;
        }
        const std::uint64_t value = std::strtoull(arguments[++i], nullptr, 10);
        if (name == "--worlds") {
            worlds = value;
            given = true;
        } else {
            seed = value;
            if (!given) worlds = 1;
        }
    }
    molly::simulation::Findings all;
    for (std::uint64_t i = 0; i < worlds; ++i) {
        const molly::simulation::Findings one = molly::simulation::simulate(seed + i);
        for (const std::string& violation : one.violations)
            fmt::print("seed {}: {}\n", seed + i, violation);
        all.add(one);
    }
    for (const auto& [name, value] : all.tally)
        fmt::print("{:>12} {}\n", value, name);
    fmt::print("{:>12} worlds, {} broken promises\n", worlds, all.violations.size());
    return all.violations.empty() ? 0 : 1;
}
