#pragma once
// How a question is built: lengths, numbers, signs, options, negations. Pure.
#include <cstdint>
#include <string_view>
#include <vector>

namespace molly::profile {

inline constexpr std::uint32_t structure_size = 2048;

/// A prompt as a question and the options to choose from (`A. `, `B. `, each on a line), where it
/// has such. Both point into the prompt.
struct Question {
    std::string_view stem;
    std::vector<std::string_view> options;
};
Question question_of(std::string_view prompt);

/// Indicators of what holds of `prompt`, below structure_size.
std::vector<std::uint32_t> structure_of(std::string_view prompt);

}  // namespace molly::profile
