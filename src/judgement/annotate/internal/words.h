#pragma once
// A text as the tokens of the sequence model: words, numbers, signs, line breaks, and what the
// recognisers found as one token each. Pure.
#include <cstdint>
#include <string_view>
#include <vector>

#include "annotate/internal/scan.h"

namespace molly::annotate {

/// How a token is written. Signs have the value of their first byte; the rest begins above them.
enum class Shape : std::uint16_t {
    line = 10,  ///< a line break
    lower = 256,
    capitalised,  ///< `Rossi`
    upper,        ///< `ROSSI`
    initial,      ///< `R`
    mixed,        ///< `McRae`, `iPhone`
    digits_1,
    digits_2,
    digits_3,
    digits_4,
    digits_5,
    digits_many,
    alnum,    ///< `12B`
    uncased,  ///< letters of a script without capitals
    found,    ///< a finding of the recognisers; its kind is added
};

struct Word {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
    Shape shape = Shape::lower;
    bool first = false;        ///< of its line or sentence
    std::uint8_t classes = 0;  ///< of the lexicon
    std::uint64_t hash = 0;    ///< of the lower-case form
    std::uint32_t prefix = 0;  ///< of its first three bytes or so, lower case
    std::uint32_t suffix_2 = 0;
    std::uint32_t suffix_3 = 0;
    std::uint32_t suffix_4 = 0;
};

/// Splits `text`; `found` are findings of the recognisers, ascending and disjoint.
void split_words(std::string_view text, const std::vector<Finding>& found,
                 std::vector<Word>& words);

/// The hash of a word's lower-case form, as the lexicon and the features know it.
std::uint64_t word_hash(std::string_view word) noexcept;

}  // namespace molly::annotate
