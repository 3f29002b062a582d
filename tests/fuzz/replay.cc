// Stands in for libFuzzer where there is none: runs every seed of a folder as it is, and two
// thousand times with a little damage. The damage is the same at every run.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size);

namespace {

using Random = std::mt19937_64;

std::size_t below(Random& random, std::size_t bound) {
    return random() % bound;
}

void damage(std::string& input, Random& random) {
    if (input.empty()) return;
    const std::size_t at = below(random, input.size());
    switch (below(random, 4)) {
        case 0:
            input[at] = static_cast<char>(random());
            break;
        case 1:
            input.resize(at);
            break;
        case 2:
            input.insert(at, input.substr(below(random, input.size()), below(random, 64)));
            break;
        default:
            input.erase(at, below(random, 16));
    }
}

void run(const std::string& input) {
    const void* bytes = input.data();
    LLVMFuzzerTestOneInput(static_cast<const std::uint8_t*>(bytes), input.size());
}

void replay(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    const std::string seed{std::istreambuf_iterator<char>(file), {}};
    run(seed);
    Random random(seed.size());
    for (int round = 0; round < 2000; ++round) {
        std::string input = seed;
        for (std::size_t i = 0; i <= below(random, 4); ++i)
            damage(input, random);
        run(input);
    }
}

}  // namespace

int main(int count, char** arguments) {
    int seeds = 0;
    for (int i = 1; i < count; ++i) {
        for (const auto& entry : std::filesystem::directory_iterator(arguments[i])) {
            replay(entry.path());
            ++seeds;
        }
    }
    std::printf("%d seeds\n", seeds);
    return seeds > 0 ? 0 : 1;
}
