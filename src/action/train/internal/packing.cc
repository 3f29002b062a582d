#include "train/internal/packing.h"

#include <algorithm>
#include <numeric>
#include <string_view>

#include "base/assert.h"
#include "train/internal/random.h"

namespace molly::train {
namespace {

std::size_t places(const Sequence& sequence) {
    return sequence.tokens.size() < 2 ? 0 : sequence.tokens.size() - 1;
}

std::uint64_t hash_of(const Sequence& sequence, std::uint64_t hash) {
    for (const Token token : sequence.tokens)
        hash = Random::mix(hash ^ (static_cast<std::uint64_t>(token) + 0x9E3779B97F4A7C15ULL));
    return hash;
}

}  // namespace

Batch PackedBatch::view() const {
    Batch batch;
    batch.sequences = rows;
    batch.tokens = context;
    batch.input = input;
    batch.target = target;
    batch.weight = weight;
    batch.first = first;
    return batch;
}

Packing::Packing(std::vector<const Sequence*> sequences, std::size_t context)
    : sequences_(std::move(sequences)), context_(context) {
    std::vector<std::uint32_t> order(sequences_.size());
    std::iota(order.begin(), order.end(), 0U);
    std::sort(order.begin(), order.end(), [this](std::uint32_t a, std::uint32_t b) {
        const std::size_t long_a = places(*sequences_[a]);
        const std::size_t long_b = places(*sequences_[b]);
        return long_a != long_b ? long_a > long_b : a < b;
    });
    std::vector<std::size_t> room;
    std::size_t open = 0;  // rows before it are full
    for (const std::uint32_t one : order) {
        const std::size_t need = places(*sequences_[one]);
        MOLLY_ASSERT(need <= context_);
        if (need == 0) continue;
        std::size_t row = open;
        while (row < room.size() && room[row] < need)
            ++row;
        if (row == room.size()) {
            room.push_back(context_);
            rows_.emplace_back();
        }
        room[row] -= need;
        rows_[row].push_back(one);
        while (open < room.size() && room[open] == 0)
            ++open;
        const auto& learned = sequences_[one]->learned;
        learned_ += static_cast<std::uint64_t>(std::count(learned.begin() + 1, learned.end(), 1));
    }
}

PackedBatch Packing::batch(std::span<const std::size_t> rows) const {
    PackedBatch out;
    out.rows = rows.size();
    out.context = context_;
    const std::size_t size = rows.size() * context_;
    out.input.resize(size);
    out.target.resize(size);
    out.weight.resize(size);
    out.first.resize(size);
    out.owner.assign(size, PackedBatch::nobody);
    for (std::size_t r = 0; r < rows.size(); ++r) {
        std::size_t at = 0;
        for (const std::uint32_t one : rows_[rows[r]]) {
            const Sequence& sequence = *sequences_[one];
            const std::size_t start = at;
            for (std::size_t t = 0; t < places(sequence); ++t, ++at) {
                const std::size_t to = r * context_ + at;
                out.input[to] = sequence.tokens[t];
                out.target[to] = sequence.tokens[t + 1];
                out.weight[to] = static_cast<float>(sequence.learned[t + 1]);
                out.first[to] = static_cast<std::uint32_t>(start);
                out.owner[to] = one;
            }
        }
        for (; at < context_; ++at)
            out.first[r * context_ + at] = static_cast<std::uint32_t>(at);
    }
    return out;
}

std::vector<std::size_t> Packing::rows_of(std::uint64_t step, std::size_t count,
                                          std::uint64_t seed) const {
    std::vector<std::size_t> out;
    std::vector<std::size_t> order;
    std::uint64_t shuffled = ~std::uint64_t{0};
    for (std::uint64_t i = step * count; out.size() < count; ++i) {
        const std::uint64_t epoch = i / rows_.size();
        if (epoch != shuffled) {
            shuffled = epoch;
            order.resize(rows_.size());
            std::iota(order.begin(), order.end(), std::size_t{0});
            Random random(seed, epoch + 1);
            for (std::size_t k = order.size(); k > 1; --k)
                std::swap(order[k - 1], order[random.below(k)]);
        }
        out.push_back(order[i % rows_.size()]);
    }
    return out;
}

std::pair<std::vector<const Example*>, std::vector<const Example*>> split_examples(
    const std::vector<Example>& examples, double share) {
    std::vector<std::pair<std::uint64_t, const Example*>> hashed;
    for (const Example& example : examples)
        hashed.emplace_back(hash_of(example.worse, hash_of(example.better, 1)), &example);
    std::vector<std::uint64_t> kinds;
    for (const auto& one : hashed)
        kinds.push_back(one.first);
    std::sort(kinds.begin(), kinds.end());
    kinds.erase(std::unique(kinds.begin(), kinds.end()), kinds.end());
    const auto wanted = static_cast<std::size_t>(share * static_cast<double>(kinds.size()) + 0.5);
    const std::size_t held =
        share <= 0 || kinds.size() < 2 ? 0 : std::clamp<std::size_t>(wanted, 1, kinds.size() - 1);
    // Kinds sort by their hash, so the first ones are a random choice that needs no seed.
    const std::uint64_t limit = held == 0 ? 0 : kinds[held - 1];
    std::pair<std::vector<const Example*>, std::vector<const Example*>> out;
    for (const auto& [hash, example] : hashed)
        (held > 0 && hash <= limit ? out.second : out.first).push_back(example);
    return out;
}

}  // namespace molly::train
