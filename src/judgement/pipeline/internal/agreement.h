#pragma once
// Do two answers say the same? Pure.
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace molly::pipeline {

/// How far two answers agree, in [0, 1]: the words that they share (F1 over multisets, as SQuAD
/// scores answers; case and punctuation apart). With `sums`, answers that end in different numbers
/// agree in nothing.
double agreement(std::string_view a, std::string_view b, bool sums);

/// One answer among several, with what counts for it by itself.
struct Voice {
    std::string_view text;
    double weight = 1;
};

/// What each has for it: its own weight, and that of the others as far as they agree with it.
/// shape: [voices] both
std::vector<double> support(std::span<const Voice> voices, bool sums);

/// Where the largest value stands, the first of equals. Of nothing: 0.
std::size_t best_of(std::span<const double> values) noexcept;

/// What a verifier says of an answer, in [0, 1]: the first number of its text, of 100 or, with a
/// point, of 1. False when it says no such number.
bool read_score(std::string_view text, double& score) noexcept;

}  // namespace molly::pipeline
