#pragma once
// Texts as hashed features: words, pairs of words, pieces of words, and how a text begins and ends.
// The trainer and the classifier share them. Pure.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace molly::profile {

/// Hashes, of which a model takes as many low bits as it has rows.
struct Features {
    std::vector<std::uint32_t> whole;
    std::vector<std::uint32_t>
        edges;  ///< of the first and last words: what is asked for stands there
};

/// Lower case, accents of Latin letters as one sign each, curly quotes as straight ones; of a long
/// text the beginning and the end.
std::string folded(std::string_view text);

/// The features of `text`, which need not be folded. `features` is filled anew.
void features_of(std::string_view text, Features& features);

}  // namespace molly::profile
