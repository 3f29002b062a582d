// Trains the names detector of `annotate`: an averaged structured perceptron with a margin over the
// features that the tagger uses, then rounds it to the small integers of the model file. The same
// input and seed give the same file. docs/detection.md says where the input comes from.
//
// usage: train_tagger LEXICON ROWS OUT [--seed N] [--epochs N] [--row-bits N] [--handicap N]
//   LEXICON  lines of `word<TAB>classes` (a number, see features.h), most important first
//   ROWS     lines of {"t": text, "s": [[begin, end, kind], ...]}, spans in bytes
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "annotate/detector.h"
#include "annotate/internal/features.h"
#include "annotate/internal/structured.h"
#include "annotate/internal/tagger.h"
#include "base/json.h"

namespace {

using namespace molly;            // NOLINT(google-build-using-namespace): one small program
using namespace molly::annotate;  // NOLINT(google-build-using-namespace)

struct Options {
    std::uint32_t seed = 1;
    int epochs = 6;
    unsigned row_bits = 14;  // buckets of rows, as a power of two
    std::uint32_t handicap = 0;
};

struct Sentence {
    std::vector<Word> words;
    std::vector<std::uint8_t> tags;
};

using Lexicon = std::unordered_map<std::uint64_t, std::uint8_t>;

[[noreturn]] void stop(const std::string& why) {
    std::fprintf(stderr, "train_tagger: %s\n", why.c_str());
    std::exit(1);
}

/// The lexicon as a map, and its words in the order of the file.
Lexicon read_lexicon(const char* path, std::vector<std::uint64_t>& order) {
    std::ifstream file(path);
    if (!file) stop(std::string("cannot read ") + path);
    Lexicon lexicon;
    for (std::string line; std::getline(file, line);) {
        const std::size_t tab = line.find('\t');
        if (tab == std::string::npos) continue;
        const std::uint64_t hash = word_hash(line.substr(0, tab));
        const auto bits = static_cast<std::uint8_t>(std::stoi(line.substr(tab + 1)));
        if (lexicon.try_emplace(hash, std::uint8_t{0}).second) order.push_back(hash);
        lexicon[hash] |= bits;
    }
    return lexicon;
}

/// The kind's place among the tagged ones, or nothing for kinds that the recognisers find.
std::optional<std::size_t> tagged(std::string_view name) {
    for (std::size_t i = 0; i < tagged_kinds.size(); ++i) {
        if (to_string(tagged_kinds[i]) == name) return i;
    }
    return std::nullopt;
}

Sentence read_sentence(const std::string& line, const Lexicon& lexicon) {
    const auto parsed = parse_json(line);
    if (!parsed) stop("a row is not JSON");
    const auto& row = parsed->as_object();
    const json::string& written = row.at("t").as_string();
    const std::string_view text(written.data(), written.size());
    std::vector<Finding> found;
    find_structured(text, found);
    settle(text, found);
    Sentence sentence;
    split_words(text, found, sentence.words);
    for (Word& word : sentence.words) {
        const auto entry = lexicon.find(word.hash);
        if (word.shape >= Shape::lower && entry != lexicon.end()) word.classes = entry->second;
    }
    sentence.tags.assign(sentence.words.size(), 0);
    for (const json::value& span : row.at("s").as_array()) {
        const auto begin = static_cast<std::uint32_t>(span.at(0).as_int64());
        const auto end = static_cast<std::uint32_t>(span.at(1).as_int64());
        const json::string& name = span.at(2).as_string();
        const auto kind = tagged(std::string_view(name.data(), name.size()));
        if (!kind) continue;
        bool first = true;
        for (std::size_t i = 0; i < sentence.words.size(); ++i) {
            const Word& word = sentence.words[i];
            if (word.end <= begin || word.begin >= end || word.shape >= Shape::found) continue;
            const std::size_t tag = first ? begin_tag(*kind) : inside_tag(*kind);
            sentence.tags[i] = static_cast<std::uint8_t>(tag);
            first = false;
        }
    }
    // What a recogniser's finding cuts in two begins anew behind it.
    for (std::size_t i = 0; i < sentence.tags.size(); ++i) {
        const std::size_t before = i == 0 ? 0 : sentence.tags[i - 1];
        if (!may_follow(before, sentence.tags[i])) --sentence.tags[i];
    }
    return sentence;
}

using Weights = std::array<float, tags_count>;

struct Weight {
    Weights now{};
    Weights late{};  // sum of updates times the time of each, for the average
};

/// Features in the order in which they were first seen, in an open table: the trainer does little
/// else than look them up.
class Ids {
public:
    static constexpr std::uint32_t none = ~0U;

    Ids() : places_(std::size_t{1} << 16U, none) {}

    std::uint32_t find(std::uint64_t feature) const {
        for (std::size_t at = bucket_of(feature, places_.size());; at = next(at)) {
            if (places_[at] == none || features_[places_[at]] == feature) return places_[at];
        }
    }

    void add(std::uint64_t feature) {
        if (find(feature) != none) return;
        features_.push_back(feature);
        if (features_.size() * 2 > places_.size()) {
            places_.assign(places_.size() * 2, none);
            for (std::uint32_t id = 0; id < features_.size(); ++id)
                place(id);
        } else {
            place(static_cast<std::uint32_t>(features_.size() - 1));
        }
    }

    std::size_t size() const { return features_.size(); }
    const std::vector<std::uint64_t>& features() const { return features_; }

private:
    std::size_t next(std::size_t at) const { return (at + 1) & (places_.size() - 1); }
    void place(std::uint32_t id) {
        std::size_t at = bucket_of(features_[id], places_.size());
        while (places_[at] != none)
            at = next(at);
        places_[at] = id;
    }

    std::vector<std::uint64_t> features_;
    std::vector<std::uint32_t> places_;
};

class Trainer {
public:
    Trainer(std::vector<Sentence> sentences, Options options)
        : sentences_(std::move(sentences)), options_(options), random_(options.seed) {
        count_features();
    }

    void train() {
        std::vector<std::size_t> order(sentences_.size());
        std::iota(order.begin(), order.end(), 0U);
        for (int epoch = 0; epoch < options_.epochs; ++epoch) {
            shuffle(order);
            std::size_t wrong = 0;
            for (const std::size_t i : order)
                wrong += learn(sentences_[i]);
            std::fprintf(stderr, "epoch %d: %zu wrong tags of %zu\n", epoch + 1, wrong, tokens_);
        }
        average();
    }

    const Ids& ids() const { return ids_; }
    const Weights& weights(std::uint32_t id) const { return weights_[id].now; }
    const std::array<Weight, tags_count>& transitions() const { return transitions_; }

private:
    static constexpr std::uint32_t none = Ids::none;

    template <class Visit>
    void each_feature(const Visit& visit) const {
        Features features;
        for (const Sentence& sentence : sentences_) {
            for (std::size_t at = 0; at < sentence.words.size(); ++at) {
                features_of(sentence.words, at, features);
                std::for_each(features.begin(), features.end(), visit);
            }
        }
    }

    /// Keeps what is seen twice. Most features are seen once, so a bit each tells them first; the
    /// few that share a bit are kept as well.
    void count_features() {
        for (const Sentence& sentence : sentences_)
            tokens_ += sentence.words.size();
        constexpr std::size_t bits = std::size_t{1} << 27U;
        std::vector<bool> once(bits);
        std::vector<bool> twice(bits);
        each_feature([&](std::uint64_t feature) {
            const std::size_t bit = (feature >> 20U) & (bits - 1);
            if (once[bit]) twice[bit] = true;
            once[bit] = true;
        });
        each_feature([&](std::uint64_t feature) {
            if (twice[(feature >> 20U) & (bits - 1)]) ids_.add(feature);
        });
        weights_.resize(ids_.size());
        std::fprintf(stderr, "%zu sentences, %zu tokens, %zu features\n", sentences_.size(),
                     tokens_, ids_.size());
    }

    void shuffle(std::vector<std::size_t>& order) {
        for (std::size_t i = order.size(); i > 1; --i)
            std::swap(order[i - 1], order[random_() % i]);
    }

    /// Makes some words unknown, or known to the lexicon only: of names, so that the model goes by
    /// what stands around them too; of the rest, so that it does not know the templates by heart.
    void mask(Sentence& sentence) {
        const auto percent = [&] { return static_cast<std::uint32_t>(random_() % 100); };
        const std::uint32_t way = percent();
        const std::uint32_t context = way < 35 ? 0 : way < 70 ? 50 : 100;
        for (std::size_t at = 0; at < sentence.words.size(); ++at) {
            const bool name = sentence.tags[at] != 0;
            const std::uint32_t draw = percent();
            if (draw >= (name ? unknown_percent + listed_percent : context)) continue;
            Word& word = sentence.words[at];
            if (word.shape < Shape::lower || word.shape >= Shape::found) continue;
            // Words that make a name of what stands beside them stay.
            if ((word.classes & (company | street | title)) != 0) continue;
            word.hash = (static_cast<std::uint64_t>(random_()) << 32U) | random_();
            if (name && draw < unknown_percent) word.classes = 0;
        }
    }

    std::size_t learn(const Sentence& original) {
        Sentence sentence = original;
        mask(sentence);
        const std::size_t count = sentence.words.size();
        features_.resize(count);
        scores_.assign(count, Weights{});
        Features hashes;
        for (std::size_t at = 0; at < count; ++at) {
            features_of(sentence.words, at, hashes);
            for (std::size_t i = 0; i < hashes.size(); ++i) {
                const std::uint32_t id = ids_.find(hashes[i]);
                features_[at][i] = id;
                if (id == none) continue;
                const Weights& row = weights_[id].now;
                for (std::size_t tag = 0; tag < tags_count; ++tag)
                    scores_[at][tag] += row[tag];
            }
            for (std::size_t tag = 0; tag < tags_count; ++tag) {
                if (tag != sentence.tags[at]) scores_[at][tag] += margin(sentence.tags[at], tag);
            }
            if (sentence.words[at].shape >= Shape::found) scores_[at][0] += 1e6F;
        }
        decode(count);
        ++time_;
        return update(sentence.tags);
    }

    /// How much better the right tag must be than a wrong one: to overlook a name is worst.
    static float margin(std::size_t right, std::size_t wrong) {
        return right != 0 && wrong == 0 ? 3.0F : 1.0F;
    }

    void decode(std::size_t count) {
        std::vector<std::array<std::uint8_t, tags_count>> from(count);
        Weights best{};
        best.fill(-1e30F);
        best[0] = 0;
        for (std::size_t at = 0; at < count; ++at) {
            Weights next{};
            for (std::size_t to = 0; to < tags_count; ++to) {
                float highest = -1e38F;
                for (std::size_t tag = 0; tag < tags_count; ++tag) {
                    if (!may_follow(tag, to)) continue;
                    const float score = best[tag] + transitions_[tag].now[to];
                    if (score <= highest) continue;
                    highest = score;
                    from[at][to] = static_cast<std::uint8_t>(tag);
                }
                next[to] = highest + scores_[at][to];
            }
            best = next;
        }
        guess_.resize(count);
        auto tag =
            static_cast<std::uint8_t>(std::max_element(best.begin(), best.end()) - best.begin());
        for (std::size_t at = count; at > 0; --at) {
            guess_[at - 1] = tag;
            tag = from[at - 1][tag];
        }
    }

    void add(Weight& weight, std::size_t tag, float amount) const {
        weight.now[tag] += amount;
        weight.late[tag] += amount * static_cast<float>(time_);
    }

    std::size_t update(const std::vector<std::uint8_t>& right) {
        std::size_t wrong = 0;
        for (std::size_t at = 0; at < right.size(); ++at) {
            const std::size_t before = at == 0 ? 0 : right[at - 1];
            const std::size_t guessed_before = at == 0 ? 0 : guess_[at - 1];
            if (right[at] != guess_[at] || before != guessed_before) {
                add(transitions_[before], right[at], step);
                add(transitions_[guessed_before], guess_[at], -step);
            }
            if (right[at] == guess_[at]) continue;
            ++wrong;
            for (const std::uint32_t id : features_[at]) {
                if (id == none) continue;
                add(weights_[id], right[at], step);
                add(weights_[id], guess_[at], -step);
            }
        }
        return wrong;
    }

    void average() {
        const auto mean = [&](Weight& weight) {
            for (std::size_t tag = 0; tag < tags_count; ++tag)
                weight.now[tag] -= weight.late[tag] / static_cast<float>(time_ + 1);
        };
        std::for_each(weights_.begin(), weights_.end(), mean);
        std::for_each(transitions_.begin(), transitions_.end(), mean);
    }

    static constexpr std::uint32_t unknown_percent = 30;
    static constexpr std::uint32_t listed_percent = 25;
    static constexpr float step = 0.1F;  // against a margin of 1

    std::vector<Sentence> sentences_;
    Options options_;
    std::mt19937 random_;
    std::size_t tokens_ = 0;
    std::size_t time_ = 0;
    Ids ids_;
    std::vector<Weight> weights_;
    std::array<Weight, tags_count> transitions_{};
    std::vector<std::array<std::uint32_t, features_per_word>> features_;
    std::vector<Weights> scores_;
    std::vector<std::uint8_t> guess_;
};

struct Row {
    std::uint64_t feature = 0;
    float size = 0;
    Weights weights{};
};

std::vector<Row> heaviest_first(const Trainer& trainer) {
    std::vector<Row> rows;
    const std::vector<std::uint64_t>& features = trainer.ids().features();
    for (std::uint32_t id = 0; id < features.size(); ++id) {
        Row row{features[id], 0, trainer.weights(id)};
        for (const float weight : row.weights)
            row.size += std::abs(weight);
        if (row.size > 0) rows.push_back(row);
    }
    std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
        return a.size != b.size ? a.size > b.size : a.feature < b.feature;
    });
    return rows;
}

class Writer {
public:
    explicit Writer(const char* path) : file_(path, std::ios::binary) {
        if (!file_) stop(std::string("cannot write ") + path);
    }
    template <class Value>
    void put(const Value* values, std::size_t count) {
        const void* bytes = values;
        file_.write(static_cast<const char*>(bytes),
                    static_cast<std::streamsize>(count * sizeof(Value)));
    }

private:
    std::ofstream file_;
};

std::vector<std::uint32_t> lexicon_table(const Lexicon& lexicon,
                                         const std::vector<std::uint64_t>& order) {
    const std::size_t buckets = std::bit_ceil(order.size() * 3 / 2 / classes_per_bucket + 1);
    std::vector<std::uint32_t> table(buckets * classes_per_bucket, 0);
    std::size_t lost = 0;
    for (const std::uint64_t word : order) {
        auto* const bucket = &table[bucket_of(word, buckets) * classes_per_bucket];
        auto* const free = std::find(bucket, bucket + classes_per_bucket, 0U);
        if (free == bucket + classes_per_bucket) {
            ++lost;
        } else {
            *free = (check_of(word) << 8U) | lexicon.at(word);
        }
    }
    std::fprintf(stderr, "lexicon: %zu words, %zu found no place\n", order.size(), lost);
    return table;
}

void write(const char* path, const Trainer& trainer, const Lexicon& lexicon,
           const std::vector<std::uint64_t>& order, const Options& options) {
    const std::vector<Row> rows = heaviest_first(trainer);
    const std::size_t buckets = std::size_t{1} << options.row_bits;
    // One weight in five hundred may be cut; the rest gets the whole range of a byte.
    std::vector<float> sizes;
    for (std::size_t i = 0; i < std::min(rows.size(), buckets * rows_per_bucket); ++i) {
        for (const float weight : rows[i].weights)
            sizes.push_back(std::abs(weight));
    }
    std::sort(sizes.begin(), sizes.end());
    const float scale = 127.0F / std::max(1e-6F, sizes[sizes.size() - 1 - sizes.size() / 500]);
    std::vector<std::array<std::int8_t, row_lanes>> table(buckets * rows_per_bucket);
    std::vector<std::uint8_t> used(buckets, 0);
    std::size_t lost = 0;
    for (const Row& row : rows) {
        const std::size_t bucket = bucket_of(row.feature, buckets);
        if (used[bucket] == rows_per_bucket) {
            ++lost;
            continue;
        }
        auto& out = table[bucket * rows_per_bucket + used[bucket]++];
        for (std::size_t tag = 0; tag < tags_count; ++tag) {
            const float rounded = std::round(row.weights[tag] * scale);
            out[tag] = static_cast<std::int8_t>(std::clamp(rounded, -127.0F, 127.0F));
        }
        const std::uint32_t check = check_of(row.feature);
        for (std::size_t i = 0; i < 3; ++i)
            out[tags_count + i] = static_cast<std::int8_t>((check >> (8U * i)) & 0xFFU);
    }
    std::fprintf(stderr, "%zu features with weight, %zu found no place, scale %.2f\n", rows.size(),
                 lost, static_cast<double>(scale));
    std::array<std::int16_t, tags_count * tags_count> transitions{};
    for (std::size_t from = 0; from < tags_count; ++from) {
        for (std::size_t to = 0; to < tags_count; ++to) {
            transitions[from * tags_count + to] =
                static_cast<std::int16_t>(std::round(trainer.transitions()[from].now[to] * scale));
        }
    }
    const std::vector<std::uint32_t> words = lexicon_table(lexicon, order);
    TaggerHeader header;
    header.magic = tagger_magic;
    header.version = tagger_version;
    header.tags = tags_count;
    header.lexicon_buckets = static_cast<std::uint32_t>(words.size() / classes_per_bucket);
    header.row_buckets = static_cast<std::uint32_t>(buckets);
    header.outside_handicap = options.handicap;
    Writer out(path);
    out.put(&header, 1);
    out.put(transitions.data(), transitions.size());
    out.put(words.data(), words.size());
    out.put(table.data(), table.size());
}

Options read_options(int count, char** arguments) {
    Options options;
    for (int i = 4; i + 1 < count; i += 2) {
        const std::string name = arguments[i];
        const int value = std::atoi(arguments[i + 1]);
        if (name == "--seed") options.seed = static_cast<std::uint32_t>(value);
        if (name == "--epochs") options.epochs = value;
        if (name == "--row-bits") options.row_bits = static_cast<unsigned>(value);
        if (name == "--handicap") options.handicap = static_cast<std::uint32_t>(value);
    }
    return options;
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 4) stop("usage: train_tagger LEXICON ROWS OUT [--seed N] [--epochs N] ...");
    const Options options = read_options(count, arguments);
    std::vector<std::uint64_t> order;
    const Lexicon lexicon = read_lexicon(arguments[1], order);
    std::ifstream rows(arguments[2]);
    if (!rows) stop(std::string("cannot read ") + arguments[2]);
    std::vector<Sentence> sentences;
    for (std::string line; std::getline(rows, line);) {
        if (!line.empty()) sentences.push_back(read_sentence(line, lexicon));
    }
    if (sentences.empty()) stop("there are no rows");
    Trainer trainer(std::move(sentences), options);
    trainer.train();
    write(arguments[3], trainer, lexicon, order, options);
    return 0;
}
