#pragma once
// Grammars of bounded JSON numbers. Pure.
#include <cstdint>
#include <string>

namespace molly::engine {

/// The largest magnitude that these grammars write.
inline constexpr std::int64_t number_magnitude_max = 999'999'999'999'999;

/// GBNF of the integers from `low` to `high`, both within the magnitude, low <= high.
std::string integer_grammar(std::int64_t low, std::int64_t high);
/// GBNF of numbers between them, with fractions.
std::string number_grammar(std::int64_t low, std::int64_t high);

}  // namespace molly::engine
