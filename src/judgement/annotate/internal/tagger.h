#pragma once
// Names persons, organisations, places, addresses and some numbers: a linear-chain model over
// hashed features with small integer weights, decoded by Viterbi. Pure; safe from any thread.
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "annotate/internal/features.h"
#include "base/result.h"

namespace molly::annotate {

/// The lanes of one row: weights of the tags, and the feature's check in the last three.
inline constexpr std::size_t row_lanes = 16;
inline constexpr std::size_t rows_per_bucket = 4;  // one cache line
inline constexpr std::size_t classes_per_bucket = 4;

/// A model as its file has it: header, transitions, lexicon, rows.
struct TaggerHeader {
    std::array<char, 8> magic{};
    std::uint32_t version = 0;
    std::uint32_t tags = 0;
    std::uint32_t lexicon_buckets = 0;   ///< a power of two
    std::uint32_t row_buckets = 0;       ///< a power of two
    std::uint32_t outside_handicap = 0;  ///< what `outside` must be better by
    std::uint32_t reserved = 0;
};
inline constexpr std::array<char, 8> tagger_magic = {'m', 'o', 'l', 'l', 'y', 't', 'a', 'g'};
inline constexpr std::uint32_t tagger_version = 1;

/// Where a feature or a word stands in tables of `buckets`, and what tells it from its neighbours.
constexpr std::size_t bucket_of(std::uint64_t hash, std::size_t buckets) noexcept {
    return static_cast<std::size_t>(hash) & (buckets - 1);
}
constexpr std::uint32_t check_of(std::uint64_t hash) noexcept {
    const auto check = static_cast<std::uint32_t>(hash >> 40U);
    return check == 0 ? 1 : check;  // 0 marks an empty place
}

class Tagger {
public:
    /// `bytes` are copied. Errors: corrupt.
    static Result<std::unique_ptr<const Tagger>> make(std::string_view bytes);

    /// The model in this binary, read when it is first asked for: it is always the same.
    /// Errors: corrupt.
    static Result<std::shared_ptr<const Tagger>> built_in();

    /// Appends persons, organisations, places and the like of `text`. `found` is what the
    /// recognisers found in it, ascending and disjoint; nothing that is appended overlaps it.
    void find(std::string_view text, const std::vector<Finding>& found,
              std::vector<Finding>& out) const;

    /// The lexicon's classes of a word.
    std::uint8_t classes_of(std::uint64_t word) const noexcept;

private:
    using Row = std::array<std::int8_t, row_lanes>;
    struct alignas(64) Bucket {
        std::array<Row, rows_per_bucket> rows{};
    };
    using Scores = std::array<std::int16_t, row_lanes>;

    /// Features that may have a row.
    struct Candidates {
        std::array<std::uint64_t, features_per_word> features{};
        std::size_t size = 0;
    };

    Tagger() = default;
    void fill_filter();
    void score(std::span<const Word> words, std::vector<Scores>& scores) const noexcept;
    Candidates candidates(const Features& features) const noexcept;
    Scores sum(const Candidates& candidates) const noexcept;
    void decode(const std::vector<Scores>& scores, std::vector<std::uint8_t>& tags) const;

    std::array<std::array<std::int32_t, tags_count>, tags_count> transitions_{};
    std::int32_t outside_handicap_ = 0;
    std::vector<std::uint32_t> lexicon_;  // shape: [buckets * classes_per_bucket]
    std::vector<Bucket> buckets_;
    /// One bit for each row, in few enough bytes to stay near the core: most features have none.
    std::vector<std::uint64_t> filter_;
};

/// The model that was built into this binary.
std::string_view built_in_tagger() noexcept;

}  // namespace molly::annotate
