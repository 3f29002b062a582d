// A permit cannot be made of bits that look like one.
// MODULE: policy
// EXPECT: no matching function for call to .*bit_cast
#include <array>
#include <bit>

#include "policy/permit.h"

using molly::policy::Permit;

struct Lookalike {
    std::array<std::byte, sizeof(Permit)> bytes;
};

Lookalike honest(std::array<std::byte, sizeof(Permit)> bytes) {
    return std::bit_cast<Lookalike>(bytes);
}

#if MISUSE
Permit forged(Lookalike lookalike) {
    return std::bit_cast<Permit>(lookalike);
}
#endif
