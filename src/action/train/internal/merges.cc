#include "train/internal/merges.h"

#include <algorithm>
#include <queue>

namespace molly::train {
namespace {

using Id = std::int32_t;
using Pair = std::uint64_t;

Pair pair_of(Id left, Id right) {
    return (static_cast<Pair>(left) << 32U) | static_cast<Pair>(right);
}

struct Word {
    std::vector<Id> ids;
    std::int64_t count = 0;
};

struct Candidate {
    std::int64_t count;
    Pair pair;
    bool operator<(const Candidate& other) const {
        return count != other.count ? count < other.count : pair > other.pair;
    }
};

class Learner {
public:
    explicit Learner(const WordCounts& words) {
        for (int byte = 0; byte < 256; ++byte)
            name(std::string(1, static_cast<char>(byte)));
        // Sorted, because the order of a hash table is nobody's promise.
        std::vector<const WordCounts::value_type*> sorted;
        for (const auto& entry : words)
            sorted.push_back(&entry);
        std::sort(sorted.begin(), sorted.end(),
                  [](const auto* a, const auto* b) { return a->first < b->first; });
        for (const auto* entry : sorted) {
            Word word;
            word.count = static_cast<std::int64_t>(entry->second);
            for (const char byte : entry->first)
                word.ids.push_back(static_cast<unsigned char>(byte));
            words_.push_back(std::move(word));
        }
        for (std::uint32_t w = 0; w < words_.size(); ++w) {
            for (std::size_t i = 0; i + 1 < words_[w].ids.size(); ++i)
                change(pair_of(words_[w].ids[i], words_[w].ids[i + 1]), words_[w].count, w);
        }
        for (const auto& [pair, count] : counts_)
            heap_.push({count, pair});
    }

    /// False when no pair occurs twice.
    bool merge_next() {
        while (!heap_.empty()) {
            const Candidate top = heap_.top();
            heap_.pop();
            const auto count = counts_.find(top.pair);
            const std::int64_t now = count == counts_.end() ? 0 : count->second;
            if (now < 2) continue;
            if (now != top.count) {
                heap_.push({now, top.pair});
                continue;
            }
            merge(top.pair);
            return true;
        }
        return false;
    }

    std::size_t tokens() const { return learned_.bytes.size(); }
    LearnedMerges take() { return std::move(learned_); }

private:
    /// Two pairs can spell the same token: it has one id.
    Id name(const std::string& bytes) {
        const auto [entry, added] = ids_.emplace(bytes, static_cast<Id>(learned_.bytes.size()));
        if (added) learned_.bytes.push_back(bytes);
        return entry->second;
    }

    void change(Pair pair, std::int64_t by, std::uint32_t word) {
        counts_[pair] += by;
        if (by > 0) {
            auto& where = where_[pair];
            if (where.empty() || where.back() != word) where.push_back(word);
            grown_.push_back(pair);
        }
    }

    void merge(Pair pair) {
        const Id left = static_cast<Id>(pair >> 32U);
        const Id right = static_cast<Id>(pair & 0xFFFFFFFFU);
        const std::string spelled = learned_.bytes[static_cast<std::size_t>(left)] +
                                    learned_.bytes[static_cast<std::size_t>(right)];
        const Id made = name(spelled);
        learned_.merges.emplace_back(left, right);
        grown_.clear();
        const auto words = std::move(where_[pair]);
        where_.erase(pair);
        for (const std::uint32_t word : words)
            merge_in(word, left, right, made);
        counts_.erase(pair);
        std::sort(grown_.begin(), grown_.end());
        grown_.erase(std::unique(grown_.begin(), grown_.end()), grown_.end());
        for (const Pair more : grown_) {
            if (const auto count = counts_.find(more); count != counts_.end())
                heap_.push({count->second, more});
        }
    }

    void merge_in(std::uint32_t number, Id left, Id right, Id made) {
        Word& word = words_[number];
        std::vector<Id>& ids = word.ids;
        for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
            if (ids[i] != left || ids[i + 1] != right) continue;
            if (i > 0) {
                change(pair_of(ids[i - 1], left), -word.count, number);
                change(pair_of(ids[i - 1], made), word.count, number);
            }
            if (i + 2 < ids.size()) {
                change(pair_of(right, ids[i + 2]), -word.count, number);
                change(pair_of(made, ids[i + 2]), word.count, number);
            }
            ids[i] = made;
            ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(i) + 1);
        }
    }

    std::vector<Word> words_;
    std::unordered_map<Pair, std::int64_t> counts_;
    std::unordered_map<Pair, std::vector<std::uint32_t>> where_;
    std::priority_queue<Candidate> heap_;
    std::vector<Pair> grown_;
    std::unordered_map<std::string, Id> ids_;
    LearnedMerges learned_;
};

}  // namespace

LearnedMerges learn_merges(const WordCounts& words, std::size_t tokens,
                           const std::function<void(std::size_t)>& progress) {
    Learner learner(words);
    while (learner.tokens() < tokens && learner.merge_next()) {
        if (progress && learner.tokens() % 64 == 0) progress(learner.tokens());
    }
    return learner.take();
}

}  // namespace molly::train
