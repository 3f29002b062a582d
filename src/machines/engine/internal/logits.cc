#include "engine/internal/logits.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace molly::engine {
namespace {

// The registers that every processor of this architecture has.
constexpr std::size_t lanes = 4;
using Floats = float __attribute__((vector_size(lanes * sizeof(float))));
using Integers = std::int32_t __attribute__((vector_size(lanes * sizeof(std::int32_t))));

Floats all_of(float value) {
    return Floats{} + value;
}

Floats load(const float* from) {
    Floats loaded;
    std::memcpy(&loaded, from, sizeof(loaded));
    return loaded;
}

Floats larger(Floats a, Floats b) {
    return a > b ? a : b;
}

/// exp(x) for x <= 0 as 2^n * 2^f with f in [-1/2, 1/2], where a polynomial is off by less than
/// 2e-7 of the value.
Floats exp_below_zero(Floats x) {
    constexpr float log2_e = 1.44269504F;
    constexpr float least = -80;            // less adds nothing to a sum that has a one in it
    constexpr float to_integer = 12582912;  // 3 * 2^22: what is added to it loses its fraction
    const Floats power = larger(x, all_of(least)) * log2_e;
    const Floats whole = (power + to_integer) - to_integer;
    const Floats f = power - whole;
    Floats value = all_of(1.5403530e-4F);
    for (const float next :
         {1.3333558e-3F, 9.6181291e-3F, 5.5504109e-2F, 2.4022651e-1F, 6.9314718e-1F, 1.0F})
        value = value * f + next;
    const Integers exponent = (__builtin_convertvector(whole, Integers) + 127) << 23;
    Floats scale;
    std::memcpy(&scale, &exponent, sizeof(scale));
    return value * scale;
}

float largest(std::span<const float> logits) {
    Floats most = all_of(logits.front());
    std::size_t at = 0;
    for (; at + lanes <= logits.size(); at += lanes)
        most = larger(load(logits.data() + at), most);
    float all = logits.front();
    for (std::size_t lane = 0; lane < lanes; ++lane)
        all = std::max(all, most[lane]);
    for (; at < logits.size(); ++at)
        all = std::max(all, logits[at]);
    return all;
}

}  // namespace

std::size_t largest_at(std::span<const float> logits) {
    const auto found = std::ranges::find(logits, largest(logits));
    return found == logits.end() ? 0 : static_cast<std::size_t>(found - logits.begin());
}

float log_sum_exp(std::span<const float> logits) {
    // Single precision within a block, double between blocks: sums of many small numbers stay
    // exact.
    constexpr std::size_t block = 256 * lanes;
    const float most = largest(logits);
    double sum = 0;
    std::size_t at = 0;
    while (at + lanes <= logits.size()) {
        Floats sums{};
        const std::size_t end = std::min(logits.size() / lanes * lanes, at + block);
        for (; at < end; at += lanes)
            sums += exp_below_zero(load(logits.data() + at) - most);
        for (std::size_t lane = 0; lane < lanes; ++lane)
            sum += static_cast<double>(sums[lane]);
    }
    for (; at < logits.size(); ++at)
        sum += static_cast<double>(exp_below_zero(all_of(logits[at] - most))[0]);
    return most + static_cast<float>(std::log(sum));
}

std::vector<std::int32_t> largest_places(std::span<const float> logits, std::size_t count) {
    std::vector<std::int32_t> places;  // a heap with the least on top
    const auto more = [&](std::int32_t a, std::int32_t b) {
        const float left = logits[static_cast<std::size_t>(a)];
        const float right = logits[static_cast<std::size_t>(b)];
        return left != right ? left > right : a < b;
    };
    const std::size_t wanted = std::min(count, logits.size());
    for (std::size_t at = 0; at < wanted; ++at)
        places.push_back(static_cast<std::int32_t>(at));
    std::ranges::make_heap(places, more);
    for (std::size_t at = wanted; wanted > 0 && at < logits.size(); ++at) {
        // Of equal ones the first stays.
        if (!(logits[at] > logits[static_cast<std::size_t>(places.front())])) continue;
        std::ranges::pop_heap(places, more);
        places.back() = static_cast<std::int32_t>(at);
        std::ranges::push_heap(places, more);
    }
    std::ranges::sort_heap(places, more);
    return places;
}

}  // namespace molly::engine
