#pragma once
// What the sequence model sees of each token: hashes of words, shapes and lexicon classes around
// it. The trainer and the tagger share them. Pure.
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "annotate/internal/words.h"

namespace molly::annotate {

inline constexpr std::size_t features_per_word = 33;
using Features = std::array<std::uint64_t, features_per_word>;

/// The features of the word at `at`.
void features_of(std::span<const Word> words, std::size_t at, Features& features) noexcept;

/// Classes of words in the lexicon, as bits.
enum LexiconClass : std::uint8_t {
    given_name = 1,
    surname = 2,
    place = 4,
    common = 8,        ///< written in lower case in running text
    very_common = 16,  ///< and often
    company = 32,      ///< a legal form or a word of companies' names
    street = 64,       ///< a kind of street, or another word of addresses
    title = 128,       ///< `Mrs`, `dott`
};

/// What each token is: outside, or the beginning or inside of one of the kinds.
inline constexpr std::array<FindingKind, 6> tagged_kinds = {
    FindingKind::person,  FindingKind::organisation, FindingKind::location,
    FindingKind::address, FindingKind::phone,        FindingKind::birth_date};
inline constexpr std::size_t tags_count = 1 + 2 * tagged_kinds.size();
constexpr std::size_t begin_tag(std::size_t kind) noexcept {
    return 1 + 2 * kind;
}
constexpr std::size_t inside_tag(std::size_t kind) noexcept {
    return 2 + 2 * kind;
}
/// Whether `next` may follow `tag`: an inside follows its own beginning or inside only.
constexpr bool may_follow(std::size_t tag, std::size_t next) noexcept {
    return next == 0 || next % 2 == 1 || tag == next || tag + 1 == next;
}

}  // namespace molly::annotate
