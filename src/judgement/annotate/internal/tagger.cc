#include "annotate/internal/tagger.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <span>

namespace molly::annotate {
namespace {

constexpr std::int32_t never = std::numeric_limits<std::int32_t>::min() / 4;

Error corrupt() {
    return Error(ErrorCode::corrupt, "the model of the names detector does not read; build again");
}

/// Copies `count` values out of `bytes`, which then begin behind them.
template <class Value>
bool take(std::string_view& bytes, Value* out, std::size_t count) noexcept {
    const std::size_t size = count * sizeof(Value);
    if (bytes.size() < size) return false;
    std::memcpy(out, bytes.data(), size);
    bytes.remove_prefix(size);
    return true;
}

/// The last three lanes (of a machine whose low byte comes first, as all that Molly runs on).
std::uint32_t row_check(const std::array<std::int8_t, row_lanes>& row) noexcept {
    static_assert(tags_count + 3 == row_lanes && std::endian::native == std::endian::little);
    std::uint32_t last = 0;
    std::memcpy(&last, row.data() + row_lanes - sizeof last, sizeof last);
    return last >> 8U;
}

constexpr std::size_t filter_bits = std::size_t{1} << 20U;

/// The bit of a row in the filter.
constexpr std::size_t filter_bit(std::size_t bucket, std::uint32_t check) noexcept {
    const std::uint64_t mixed = (std::uint64_t{bucket} << 24U | check) * 0x9e3779b97f4a7c15U;
    return static_cast<std::size_t>(mixed >> 44U);
}
static_assert(filter_bits == std::size_t{1} << (64U - 44U));

/// Whether a kind of token can be part of a name at all.
bool taggable(const Word& word) noexcept {
    return word.shape < Shape::found;
}

/// Signs that no name begins or ends with.
bool loose(std::string_view text, const Word& word) noexcept {
    if (word.shape == Shape::line) return true;
    if (word.shape >= Shape::lower) return false;
    return text[word.begin] != '.' && text[word.begin] != ')' && text[word.begin] != '(' &&
           text[word.begin] != '+';
}

bool has_capital(const Word& word) noexcept {
    return word.shape >= Shape::capitalised && word.shape <= Shape::mixed;
}

/// Whether the words can be a name at all. Nobody reads one into common words in small letters, and
/// an address has a capital, a kind of street or another word of addresses somewhere.
bool plausible(std::span<const Word> words, FindingKind kind) noexcept {
    if (kind == FindingKind::phone || kind == FindingKind::birth_date) return true;
    const auto tells = [&](const Word& word) {
        if (has_capital(word) || word.shape == Shape::uncased) return true;
        if (kind == FindingKind::address) return (word.classes & street) != 0;
        return word.shape == Shape::lower && (word.classes & common) == 0;
    };
    return std::any_of(words.begin(), words.end(), tells);
}

}  // namespace

Result<std::unique_ptr<const Tagger>> Tagger::make(std::string_view bytes) {
    TaggerHeader header;
    if (!take(bytes, &header, 1) || header.magic != tagger_magic ||
        header.version != tagger_version || header.tags != tags_count ||
        !std::has_single_bit(header.lexicon_buckets) || !std::has_single_bit(header.row_buckets) ||
        header.lexicon_buckets > (1U << 24U) || header.row_buckets > (1U << 24U))
        return fail(corrupt());
    std::unique_ptr<Tagger> made(new Tagger());
    std::array<std::int16_t, tags_count * tags_count> transitions{};
    made->lexicon_.resize(header.lexicon_buckets * classes_per_bucket);
    made->buckets_.resize(header.row_buckets);
    if (!take(bytes, transitions.data(), transitions.size()) ||
        !take(bytes, made->lexicon_.data(), made->lexicon_.size()) ||
        !take(bytes, made->buckets_.data(), made->buckets_.size()) || !bytes.empty())
        return fail(corrupt());
    made->fill_filter();
    for (std::size_t from = 0; from < tags_count; ++from) {
        for (std::size_t to = 0; to < tags_count; ++to) {
            made->transitions_[from][to] =
                may_follow(from, to) ? transitions[from * tags_count + to] : never;
        }
    }
    made->outside_handicap_ = static_cast<std::int32_t>(header.outside_handicap);
    return made;
}

Result<std::shared_ptr<const Tagger>> Tagger::built_in() {
    const auto read = []() -> Result<std::shared_ptr<const Tagger>> {
        TRY(std::shared_ptr<const Tagger> made, make(built_in_tagger()));
        return made;
    };
    static const Result<std::shared_ptr<const Tagger>> one = read();
    return one;
}

std::uint8_t Tagger::classes_of(std::uint64_t word) const noexcept {
    const std::size_t bucket = bucket_of(word, lexicon_.size() / classes_per_bucket);
    const std::uint32_t check = check_of(word);
    for (std::size_t i = 0; i < classes_per_bucket; ++i) {
        const std::uint32_t entry = lexicon_[bucket * classes_per_bucket + i];
        if (entry >> 8U == check) return static_cast<std::uint8_t>(entry & 0xFFU);
    }
    return 0;
}

void Tagger::fill_filter() {
    filter_.assign(filter_bits / 64, 0);
    for (std::size_t at = 0; at < buckets_.size(); ++at) {
        for (const Row& row : buckets_[at].rows) {
            if (row_check(row) == 0) continue;
            const std::size_t bit = filter_bit(at, row_check(row));
            filter_[bit / 64] |= std::uint64_t{1} << (bit % 64);
        }
    }
}

Tagger::Candidates Tagger::candidates(const Features& features) const noexcept {
    Candidates out;
    for (const std::uint64_t feature : features) {
        const std::size_t bucket = bucket_of(feature, buckets_.size());
        const std::size_t bit = filter_bit(bucket, check_of(feature));
        if (((filter_[bit / 64] >> (bit % 64)) & 1U) == 0) continue;
        out.features[out.size++] = feature;
        __builtin_prefetch(&buckets_[bucket]);
    }
    return out;
}

Tagger::Scores Tagger::sum(const Candidates& candidates) const noexcept {
    // Vectors of the compiler: at -O2 it makes none of the loop by itself.
    using Bytes [[gnu::vector_size(row_lanes)]] = std::int8_t;
    using Words [[gnu::vector_size(row_lanes * 2)]] = std::int16_t;
    Words total{};
    for (std::size_t i = 0; i < candidates.size; ++i) {
        const std::uint64_t feature = candidates.features[i];
        const Bucket& bucket = buckets_[bucket_of(feature, buckets_.size())];
        const std::uint32_t check = check_of(feature);
        for (const Row& row : bucket.rows) {
            if (row_check(row) != check) continue;
            Bytes bytes;
            std::memcpy(&bytes, row.data(), sizeof bytes);
            total += __builtin_convertvector(bytes, Words);
            break;
        }
    }
    Scores scores{};
    std::memcpy(scores.data(), &total, sizeof total);
    return scores;
}

void Tagger::score(std::span<const Word> words, std::vector<Scores>& scores) const noexcept {
    // While the rows of one word are added, those of the next are on their way from memory.
    Features features;
    std::array<Candidates, 2> wanted;
    for (std::size_t at = 0; at <= words.size(); ++at) {
        if (at < words.size()) {
            features_of(words, at, features);
            wanted[at % 2] = candidates(features);
        }
        if (at > 0) scores[at - 1] = sum(wanted[(at - 1) % 2]);
    }
}

void Tagger::decode(const std::vector<Scores>& scores, std::vector<std::uint8_t>& tags) const {
    const std::size_t count = scores.size();
    using Column = std::array<std::int32_t, tags_count>;
    Column best{};
    best.fill(never);
    best[0] = 0;  // before the first token stands the outside
    std::vector<std::array<std::uint8_t, tags_count>> from(count);
    for (std::size_t at = 0; at < count; ++at) {
        Column next{};
        for (std::size_t to = 0; to < tags_count; ++to) {
            // Inside comes after its own beginning or inside only.
            const bool inside = to > 0 && to % 2 == 0;
            std::int32_t highest = never * 2;
            for (std::size_t tag = inside ? to - 1 : 0; tag < (inside ? to + 1 : tags_count);
                 ++tag) {
                const std::int32_t score = best[tag] + transitions_[tag][to];
                from[at][to] = score > highest ? static_cast<std::uint8_t>(tag) : from[at][to];
                highest = std::max(highest, score);
            }
            const std::int32_t handicap = to == 0 ? outside_handicap_ : 0;
            next[to] = std::max(highest + scores[at][to] - handicap, never);
        }
        best = next;
    }
    auto tag = static_cast<std::uint8_t>(std::max_element(best.begin(), best.end()) - best.begin());
    tags.resize(count);
    for (std::size_t at = count; at > 0; --at) {
        tags[at - 1] = tag;
        tag = from[at - 1][tag];
    }
}

void Tagger::find(std::string_view text, const std::vector<Finding>& found,
                  std::vector<Finding>& out) const {
    std::vector<Word> words;
    words.reserve(text.size() / 4 + 8);
    split_words(text, found, words);
    if (words.empty()) return;
    for (Word& word : words)
        word.classes = word.shape >= Shape::lower ? classes_of(word.hash) : std::uint8_t{0};
    std::vector<Scores> scores(words.size());
    score(words, scores);
    constexpr std::int16_t outside_for_sure = 16'000;
    for (std::size_t at = 0; at < words.size(); ++at) {
        if (!taggable(words[at])) scores[at][0] = outside_for_sure;
    }
    std::vector<std::uint8_t> tags;
    decode(scores, tags);
    for (std::size_t at = 0; at < words.size();) {
        if (tags[at] == 0) {
            ++at;
            continue;
        }
        std::size_t first = at;
        const std::size_t kind = (tags[at] - 1U) / 2;
        std::size_t last = at++;
        while (at < words.size() && tags[at] == inside_tag(kind))
            last = at++;
        while (first < last && loose(text, words[first]))
            ++first;
        while (last > first && loose(text, words[last]))
            --last;
        if (loose(text, words[first])) continue;
        const auto span = std::span(words).subspan(first, last - first + 1);
        if (!plausible(span, tagged_kinds[kind])) continue;
        out.push_back(annotate::found(tagged_kinds[kind], words[first].begin, words[last].end));
    }
}

}  // namespace molly::annotate
