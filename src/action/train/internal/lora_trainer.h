#pragma once
// One step of an adapter's training: on answers (SFT), or on pairs of a better and a worse answer
// (DPO; Rafailov et al., 2023). The frozen base is the reference: the same model, adapter off.
#include <cstdint>
#include <span>
#include <vector>

#include "train/internal/lora_pass.h"
#include "train/internal/optimizer.h"
#include "train/internal/packing.h"

namespace molly::train {

/// What DPO compares with.
struct PairOptions {
    float beta = 0.1F;     ///< how far the adapter may move away from the base
    float sft_weight = 0;  ///< of the better answer's own mean loss, beside the preference
};

struct PairReport : StepReport {
    double accuracy = 0;  ///< share of pairs whose better answer gained more
};

class LoraTrainer {
public:
    /// `rows_at_once`: of a batch; more is faster and needs more memory.
    LoraTrainer(const FrozenModel& model, const LoraLayout& layout, const AdapterScale& scale,
                std::size_t lanes, Precision precision, std::size_t rows_at_once,
                std::size_t context);

    TrainingState fresh(std::uint64_t seed) const;
    /// One step on the answers of a batch; `drop_seed` decides dropout.
    StepReport step(TrainingState& state, const PackedBatch& batch, const OptimizerOptions& options,
                    std::uint64_t drop_seed);
    /// One step on pairs. Sequence 2p is the better answer of pair p, 2p + 1 the worse one;
    /// reference[sequence] is its log-probability under the base.
    PairReport step(TrainingState& state, const PackedBatch& batch,
                    std::span<const double> reference, const PairOptions& pairs,
                    const OptimizerOptions& options);
    /// The mean loss of the learned tokens. An empty adapter: of the bare base.
    double evaluate(std::span<const float> adapter, const PackedBatch& batch);
    /// Adds the log-probability of each learned sequence of a batch to out[owner].
    void score(std::span<const float> adapter, const PackedBatch& batch, std::span<double> out);
    /// The preference loss and accuracy of pairs, nothing changes.
    PairReport evaluate(std::span<const float> adapter, const PackedBatch& batch,
                        std::span<const double> reference, const PairOptions& pairs);
    /// The gradient of the last step, before clipping.
    std::span<const float> gradient() const noexcept { return gradient_; }

private:
    template <class Work>
    void each_part(const PackedBatch& batch, const Work& work);
    void move(TrainingState& state, const OptimizerOptions& options, StepReport& report);

    const LoraLayout& layout_;
    Lanes lanes_;
    LoraPass pass_;
    std::size_t rows_at_once_;
    std::vector<float> gradient_;
};

}  // namespace molly::train
