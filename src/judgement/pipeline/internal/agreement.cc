#include "pipeline/internal/agreement.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace molly::pipeline {
namespace {

constexpr std::size_t bytes_max = 64 * 1024;  // of one answer that are compared

bool is_digit(char c) noexcept {
    return c >= '0' && c <= '9';
}

/// Letters, digits and everything beyond ASCII.
bool in_word(char c) noexcept {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x80 || is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// A point or comma between two digits belongs to the number.
bool joins_digits(std::string_view text, std::size_t at) noexcept {
    return (text[at] == '.' || text[at] == ',') && at > 0 && at + 1 < text.size() &&
           is_digit(text[at - 1]) && is_digit(text[at + 1]);
}

/// In lower case, in order.
std::vector<std::string> words_of(std::string_view text) {
    text = text.substr(0, bytes_max);
    std::vector<std::string> words;
    std::string word;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (in_word(c) || joins_digits(text, i)) {
            word += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
        } else if (!word.empty()) {
            words.push_back(std::move(word));
            word.clear();
        }
    }
    if (!word.empty()) words.push_back(std::move(word));
    return words;
}

/// The last word that begins with a digit; empty: none does.
std::string_view last_number(const std::vector<std::string>& words) noexcept {
    const auto last = std::find_if(words.rbegin(), words.rend(),
                                   [](const std::string& word) { return is_digit(word.front()); });
    return last == words.rend() ? std::string_view() : std::string_view(*last);
}

}  // namespace

double agreement(std::string_view a, std::string_view b, bool sums) {
    std::vector<std::string> left = words_of(a);
    std::vector<std::string> right = words_of(b);
    if (left.empty() || right.empty()) return left.empty() && right.empty() ? 1 : 0;
    if (sums && last_number(left) != last_number(right)) return 0;
    std::sort(left.begin(), left.end());
    std::sort(right.begin(), right.end());
    std::vector<std::string> common;
    std::set_intersection(left.begin(), left.end(), right.begin(), right.end(),
                          std::back_inserter(common));
    return 2 * static_cast<double>(common.size()) / static_cast<double>(left.size() + right.size());
}

std::vector<double> support(std::span<const Voice> voices, bool sums) {
    std::vector<double> out;
    out.reserve(voices.size());
    for (const Voice& voice : voices)
        out.push_back(voice.weight);
    for (std::size_t i = 0; i < voices.size(); ++i) {
        for (std::size_t j = i + 1; j < voices.size(); ++j) {
            const double alike = agreement(voices[i].text, voices[j].text, sums);
            out[i] += alike * voices[j].weight;
            out[j] += alike * voices[i].weight;
        }
    }
    return out;
}

std::size_t best_of(std::span<const double> values) noexcept {
    return static_cast<std::size_t>(std::max_element(values.begin(), values.end()) -
                                    values.begin());
}

bool read_score(std::string_view text, double& score) noexcept {
    const auto digit = std::find_if(text.begin(), text.end(), is_digit);
    if (digit == text.end()) return false;
    const char* begin = text.data() + (digit - text.begin());
    double number = 0;
    const auto read = std::from_chars(begin, text.data() + text.size(), number);
    if (read.ec != std::errc() || !std::isfinite(number)) return false;
    const bool negative = digit != text.begin() && *(digit - 1) == '-';
    const bool share = std::find(begin, read.ptr, '.') != read.ptr && number <= 1;
    if (!share) number /= 100;
    if (negative || number > 1) return false;
    score = number;
    return true;
}

}  // namespace molly::pipeline
