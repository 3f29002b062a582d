#include "train/internal/optimizer.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

namespace molly::train {
namespace {

/// Calls work(part) for the sequences of one lane, a few at once.
template <class Work>
void each_part(const Batch& batch, std::span<const float> weight, std::size_t lane,
               std::size_t lanes, std::size_t at_once, const Work& work) {
    const std::size_t end = batch.sequences * (lane + 1) / lanes;
    for (std::size_t s = batch.sequences * lane / lanes; s < end; s += at_once)
        work(part_of(batch, weight, s, std::min(at_once, end - s)));
}

}  // namespace

float learning_rate_at(const OptimizerOptions& options, std::uint64_t step) noexcept {
    const double peak = static_cast<double>(options.learning_rate);
    if (step < options.warm_up_steps) {
        return static_cast<float>(peak * static_cast<double>(step + 1) /
                                  static_cast<double>(options.warm_up_steps));
    }
    const double rest = static_cast<double>(
        options.steps > options.warm_up_steps ? options.steps - options.warm_up_steps : 1);
    const double along = std::min(1.0, static_cast<double>(step - options.warm_up_steps) / rest);
    const double last = peak * static_cast<double>(options.last_rate_fraction);
    return static_cast<float>(last +
                              (peak - last) * 0.5 * (1.0 + std::cos(std::numbers::pi * along)));
}

AdamStep adam_step(const OptimizerOptions& options, std::uint64_t count, double gradient_norm,
                   float rate) noexcept {
    const auto power = [count](float beta) {
        return 1.0 - std::pow(static_cast<double>(beta), static_cast<double>(count));
    };
    const double most = static_cast<double>(options.gradient_norm_max);
    AdamStep step;
    step.rate = rate;
    step.decay = options.decay;
    step.beta_1 = options.beta_1;
    step.beta_2 = options.beta_2;
    step.correction_1 = static_cast<float>(1.0 / power(options.beta_1));
    step.correction_2 = static_cast<float>(1.0 / power(options.beta_2));
    step.gradient_scale = static_cast<float>(gradient_norm > most ? most / gradient_norm : 1.0);
    return step;
}

Trainer::Trainer(const Shape& shape, std::size_t lanes, std::size_t sequences_at_once,
                 Precision precision)
    : shape_(shape), layout_(shape), at_once_(sequences_at_once), lanes_(lanes) {
    lanes_state_.resize(lanes_.count());
    for (Lane& lane : lanes_state_) {
        lane.pass = std::make_unique<Pass>(shape_, layout_, at_once_, precision);
        lane.gradients.resize(layout_.size);
    }
}

TrainingState Trainer::fresh(std::uint64_t seed) const {
    TrainingState state;
    state.weights = make_weights(shape_, layout_, seed);
    state.first.resize(layout_.size);
    state.second.resize(layout_.size);
    return state;
}

StepReport Trainer::step(TrainingState& state, const Batch& batch,
                         const OptimizerOptions& options) {
    const double total = std::accumulate(batch.weight.begin(), batch.weight.end(), 0.0);
    weight_.resize(batch.size());
    std::transform(batch.weight.begin(), batch.weight.end(), weight_.begin(), [total](float w) {
        return static_cast<float>(static_cast<double>(w) / std::max(total, 1e-9));
    });
    lanes_.run([&](std::size_t number) {
        Lane& lane = lanes_state_[number];
        lane.loss = 0;
        std::fill(lane.gradients.begin(), lane.gradients.end(), 0.0F);
        each_part(batch, weight_, number, lanes_.count(), at_once_, [&](const Batch& piece) {
            lane.loss += lane.pass->train(state.weights, piece, options.z_loss, lane.gradients);
        });
    });
    add_gradients();
    StepReport report;
    for (const Lane& lane : lanes_state_) {
        report.loss += lane.loss;
        report.gradient_norm += lane.square;
    }
    report.gradient_norm = std::sqrt(report.gradient_norm);
    report.rate = learning_rate_at(options, state.step);
    move(state, options, adam_step(options, ++state.step, report.gradient_norm, report.rate));
    return report;
}

void Trainer::add_gradients() {
    lanes_.split(layout_.size, [this](std::size_t number, std::size_t from, std::size_t to) {
        float* sum = lanes_state_.front().gradients.data();
        for (std::size_t other = 1; other < lanes_state_.size(); ++other)
            kernels().add(to - from, lanes_state_[other].gradients.data() + from, sum + from);
        lanes_state_[number].square = kernels().dot(to - from, sum + from, sum + from);
    });
}

void Trainer::move(TrainingState& state, const OptimizerOptions& options, const AdamStep& step) {
    const float* gradient = lanes_state_.front().gradients.data();
    lanes_.split(layout_.size, [&](std::size_t /*lane*/, std::size_t from, std::size_t to) {
        for (const Tensor& tensor : layout_.tensors) {
            const std::size_t start = std::max(from, tensor.offset);
            const std::size_t end = std::min(to, tensor.offset + tensor.size());
            if (start >= end) continue;
            AdamStep mine = step;
            mine.decay = tensor.decays ? options.decay : 0.0F;
            kernels().adam(end - start, mine, gradient + start, state.weights.data() + start,
                           state.first.data() + start, state.second.data() + start);
        }
    });
}

double Trainer::evaluate(std::span<const float> weights, const Batch& batch) {
    lanes_.run([&](std::size_t number) {
        Lane& lane = lanes_state_[number];
        lane.loss = 0;
        each_part(batch, batch.weight, number, lanes_.count(), at_once_,
                  [&](const Batch& piece) { lane.loss += lane.pass->loss(weights, piece); });
    });
    double loss = 0;
    for (const Lane& lane : lanes_state_)
        loss += lane.loss;
    const double total = std::accumulate(batch.weight.begin(), batch.weight.end(), 0.0);
    return loss / std::max(total, 1e-9);
}

}  // namespace molly::train
