#include "train/internal/lora_trainer.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "train/internal/kernels.h"
#include "train/internal/random.h"

namespace molly::train {
namespace {

/// log(1 + e^x) without overflow.
double softplus(double x) {
    return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
}

/// How a batch's pairs stand against the reference.
struct Margins {
    std::vector<std::uint32_t> pairs;  ///< numbers of the pairs of this batch
    std::vector<double> margin;        ///< of each pair, times beta
    std::vector<double> slope;         ///< by owner: d loss / d (-log p)
    std::vector<double> learned;       ///< by owner: tokens
    double loss = 0;
    double accuracy = 0;
};

Margins margins_of(const PackedBatch& batch, std::span<const double> scores,
                   std::span<const double> reference, const PairOptions& options) {
    Margins out;
    out.slope.resize(reference.size());
    out.learned.resize(reference.size());
    std::set<std::uint32_t> present;
    for (std::size_t i = 0; i < batch.owner.size(); ++i) {
        if (batch.owner[i] == PackedBatch::nobody || batch.weight[i] == 0) continue;
        present.insert(batch.owner[i] / 2);
        out.learned[batch.owner[i]] += 1;
    }
    const auto count = static_cast<double>(std::max<std::size_t>(present.size(), 1));
    for (const std::uint32_t pair : present) {
        const std::size_t better = 2 * std::size_t{pair};
        const double margin =
            static_cast<double>(options.beta) *
            ((scores[better] - reference[better]) - (scores[better + 1] - reference[better + 1]));
        out.pairs.push_back(pair);
        out.margin.push_back(margin);
        out.loss += softplus(-margin) / count;
        out.accuracy += (margin > 0 ? 1.0 : 0.0) / count;
        const double slope = static_cast<double>(options.beta) / (1 + std::exp(margin)) / count;
        out.slope[better] = slope;
        out.slope[better + 1] = -slope;
        if (options.sft_weight == 0 || out.learned[better] == 0) continue;
        const double share = static_cast<double>(options.sft_weight) / out.learned[better] / count;
        out.slope[better] += share;
        out.loss -= share * scores[better];
    }
    return out;
}

}  // namespace

LoraTrainer::LoraTrainer(const FrozenModel& model, const LoraLayout& layout,
                         const AdapterScale& scale, std::size_t lanes, Precision precision,
                         std::size_t rows_at_once, std::size_t context)
    : layout_(layout),
      lanes_(lanes),
      pass_(model, layout, scale, lanes_, precision, rows_at_once, context),
      rows_at_once_(rows_at_once),
      gradient_(layout.size) {}

TrainingState LoraTrainer::fresh(std::uint64_t seed) const {
    TrainingState state;
    state.weights = make_adapter(layout_, seed);
    state.first.resize(layout_.size);
    state.second.resize(layout_.size);
    return state;
}

template <class Work>
void LoraTrainer::each_part(const PackedBatch& batch, const Work& work) {
    const Batch whole = batch.view();
    for (std::size_t row = 0; row < batch.rows; row += rows_at_once_) {
        const std::size_t count = std::min(rows_at_once_, batch.rows - row);
        work(part_of(whole, whole.weight, row, count), row * batch.context);
    }
}

StepReport LoraTrainer::step(TrainingState& state, const PackedBatch& batch,
                             const OptimizerOptions& options, std::uint64_t drop_seed) {
    const double total = std::accumulate(batch.weight.begin(), batch.weight.end(), 0.0);
    std::fill(gradient_.begin(), gradient_.end(), 0.0F);
    StepReport report;
    std::vector<float> weight;
    each_part(batch, [&](const Batch& part, std::size_t from) {
        const std::uint64_t key =
            drop_seed == 0 ? 0 : Random::mix(drop_seed + (state.step << 20U) + from) | 1U;
        pass_.forward({state.weights, key}, part);
        weight.assign(part.weight.begin(), part.weight.end());
        for (float& one : weight)
            one = static_cast<float>(static_cast<double>(one) / std::max(total, 1e-9));
        report.loss += pass_.backward(weight, gradient_);
    });
    move(state, options, report);
    return report;
}

PairReport LoraTrainer::step(TrainingState& state, const PackedBatch& batch,
                             std::span<const double> reference, const PairOptions& pairs,
                             const OptimizerOptions& options) {
    std::vector<double> scores(reference.size());
    score(state.weights, batch, scores);
    const Margins margins = margins_of(batch, scores, reference, pairs);
    std::fill(gradient_.begin(), gradient_.end(), 0.0F);
    const bool one_part = batch.rows <= rows_at_once_;
    each_part(batch, [&](const Batch& part, std::size_t from) {
        std::vector<float> weight(part.size());
        for (std::size_t i = 0; i < weight.size(); ++i) {
            const std::uint32_t owner = batch.owner[from + i];
            if (owner == PackedBatch::nobody || part.weight[i] == 0) continue;
            weight[i] = static_cast<float>(margins.slope[owner]);
        }
        // A batch in one part is still where score() left it.
        if (!one_part) pass_.forward({state.weights}, part);
        pass_.backward(weight, gradient_);
    });
    PairReport report;
    report.loss = margins.loss;
    report.accuracy = margins.accuracy;
    move(state, options, report);
    return report;
}

void LoraTrainer::move(TrainingState& state, const OptimizerOptions& options, StepReport& report) {
    report.gradient_norm =
        std::sqrt(kernels().dot(gradient_.size(), gradient_.data(), gradient_.data()));
    report.rate = learning_rate_at(options, state.step);
    const AdamStep step = adam_step(options, ++state.step, report.gradient_norm, report.rate);
    lanes_.split(gradient_.size(), [&](std::size_t /*lane*/, std::size_t from, std::size_t to) {
        kernels().adam(to - from, step, gradient_.data() + from, state.weights.data() + from,
                       state.first.data() + from, state.second.data() + from);
    });
}

double LoraTrainer::evaluate(std::span<const float> adapter, const PackedBatch& batch) {
    double sum = 0;
    each_part(batch, [&](const Batch& part, std::size_t /*from*/) {
        pass_.forward({adapter}, part);
        for (const float loss : pass_.losses())
            sum += static_cast<double>(loss);
    });
    const auto learned = std::count_if(batch.weight.begin(), batch.weight.end(),
                                       [](float weight) { return weight != 0; });
    return sum / static_cast<double>(std::max<std::ptrdiff_t>(learned, 1));
}

void LoraTrainer::score(std::span<const float> adapter, const PackedBatch& batch,
                        std::span<double> out) {
    each_part(batch, [&](const Batch& part, std::size_t from) {
        pass_.forward({adapter}, part);
        const auto losses = pass_.losses();
        for (std::size_t i = 0; i < losses.size(); ++i) {
            const std::uint32_t owner = batch.owner[from + i];
            if (owner != PackedBatch::nobody) out[owner] -= static_cast<double>(losses[i]);
        }
    });
}

PairReport LoraTrainer::evaluate(std::span<const float> adapter, const PackedBatch& batch,
                                 std::span<const double> reference, const PairOptions& pairs) {
    std::vector<double> scores(reference.size());
    score(adapter, batch, scores);
    const Margins margins = margins_of(batch, scores, reference, pairs);
    PairReport report;
    report.loss = margins.loss;
    report.accuracy = margins.accuracy;
    return report;
}

}  // namespace molly::train
