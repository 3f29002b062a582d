#pragma once
// One training step: lanes make gradients, the norm is clipped, AdamW moves the weights (Loshchilov
// and Hutter, 2019). Adding and summing have a fixed order, so that a seed and a number of lanes
// give the same bits.
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "train/internal/kernels.h"
#include "train/internal/lanes.h"
#include "train/internal/pass.h"

namespace molly::train {

/// What stays the same over a run.
struct OptimizerOptions {
    float learning_rate = 1e-3F;      ///< at its peak
    float last_rate_fraction = 0.1F;  ///< of the peak, at the last step
    float decay = 0.1F;
    float beta_1 = 0.9F;
    float beta_2 = 0.99F;  ///< steps of few tokens want a long memory
    float gradient_norm_max = 1.0F;
    float z_loss = 0;
    std::uint64_t warm_up_steps = 0;
    std::uint64_t steps = 0;
};

/// Linear warm-up, then a cosine from the peak to its last fraction. `step` counts from 0.
float learning_rate_at(const OptimizerOptions& options, std::uint64_t step) noexcept;

/// Adam's constants for step number `count` (from 1), the gradient clipped to the largest norm.
AdamStep adam_step(const OptimizerOptions& options, std::uint64_t count, double gradient_norm,
                   float rate) noexcept;

/// Everything that training changes.
struct TrainingState {
    std::uint64_t step = 0;  ///< steps done
    std::vector<float> weights, first, second;
};

struct StepReport {
    double loss = 0;  ///< mean over the tokens that count
    double gradient_norm = 0;
    float rate = 0;
};

class Trainer {
public:
    /// `sequences_at_once`: of one lane; more is faster and needs more memory.
    Trainer(const Shape& shape, std::size_t lanes, std::size_t sequences_at_once,
            Precision precision = Precision::f32);

    const Shape& shape() const noexcept { return shape_; }
    const Layout& layout() const noexcept { return layout_; }
    TrainingState fresh(std::uint64_t seed) const;

    /// One step on the whole batch, whatever its number of sequences (they are accumulated).
    StepReport step(TrainingState& state, const Batch& batch, const OptimizerOptions& options);
    /// The mean loss of a batch, and nothing changes.
    double evaluate(std::span<const float> weights, const Batch& batch);
    /// The gradient of the last step's mean loss, before clipping.
    std::span<const float> gradient() const noexcept { return lanes_state_.front().gradients; }

private:
    struct Lane {
        std::unique_ptr<Pass> pass;
        std::vector<float> gradients;
        double loss = 0;
        double square = 0;
    };
    void add_gradients();
    void move(TrainingState& state, const OptimizerOptions& options, const AdamStep& step);

    Shape shape_;
    Layout layout_;
    std::size_t at_once_;
    Lanes lanes_;
    std::vector<Lane> lanes_state_;
    std::vector<float> weight_;  ///< of the batch's targets, divided by their sum
};

}  // namespace molly::train
