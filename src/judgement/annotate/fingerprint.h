#pragma once
// Recognises text that came by before, copied or lightly edited: keyed winnowing (Schleimer,
// Wilkerson, Aiken 2003, "Winnowing: local algorithms for document fingerprinting"). Pure after
// construction; safe from any thread.
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "domain/request.h"
#include "domain/texts.h"

namespace molly::annotate {

/// So many fingerprints in common make one text part of another. Unrelated texts share a few where
/// they quote the same proverb or licence.
inline constexpr std::uint32_t fingerprints_enough = 4;

class Fingerprinter {
public:
    /// Without `key` nobody can tell which text a fingerprint is of.
    explicit Fingerprinter(std::string_view key);

    /// The fingerprints of one text: of any passage of 31 letters and digits at least one. Case,
    /// accents, blanks and punctuation do not count.
    std::vector<std::uint64_t> of(std::string_view text,
                                  domain::TextForm form = domain::TextForm::plain) const;

    /// Of every text of a request: what may hold a passage that came by before.
    std::vector<std::vector<std::uint64_t>> of_all(const domain::Request& request) const;
    /// Of what people, tools and models said in it, and not of what an app says each time (system
    /// text, tool descriptions): that would carry a label to every request of the app.
    std::vector<std::vector<std::uint64_t>> of_said(const domain::Request& request) const;

private:
    std::uint64_t sealed(std::uint64_t hash) const;

    std::array<std::uint64_t, 256> letters_{};  // a secret number for each byte
    std::string key_;                           // for the last step, which cannot be undone
};

}  // namespace molly::annotate
