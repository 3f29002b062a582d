#pragma once
// A decoder in double precision, written for clarity alone: what the trainer's losses and gradients
// are compared with. For tests.
#include <cmath>
#include <cstddef>
#include <vector>

#include "train/internal/pass.h"
#include "train/internal/weights.h"

namespace molly::train {

class ReferenceModel {
public:
    ReferenceModel(const Shape& shape, const Layout& layout) : shape_(shape), layout_(layout) {}

    /// The sum of weight * loss, as Pass::loss.
    double loss(const std::vector<double>& weights, const Batch& batch, double z_loss) const {
        double sum = 0;
        for (std::size_t s = 0; s < batch.sequences; ++s) {
            const std::size_t row = s * batch.tokens;
            const auto logits = forward(weights, batch, row);
            for (std::size_t t = 0; t < batch.tokens; ++t) {
                double total = 0;
                for (const double logit : logits[t])
                    total += std::exp(logit);
                const double log_sum = std::log(total);
                const auto target = static_cast<std::size_t>(batch.target[row + t]);
                sum += static_cast<double>(batch.weight[row + t]) *
                       (log_sum - logits[t][target] + z_loss * log_sum * log_sum);
            }
        }
        return sum;
    }

    using Rows = std::vector<std::vector<double>>;
    /// Logits of the sequence that begins at `row` of the batch: [tokens, vocabulary].
    Rows forward(const std::vector<double>& weights, const Batch& batch, std::size_t row) const {
        Rows stream;
        for (std::size_t t = 0; t < batch.tokens; ++t) {
            const auto token = static_cast<std::size_t>(batch.input[row + t]);
            const double* from = weights.data() + layout_.embedding + token * shape_.embed;
            stream.emplace_back(from, from + shape_.embed);
        }
        for (const LayerLayout& layer : layout_.layers) {
            attend(weights, layer, batch, row, stream);
            feed(weights, layer, stream);
        }
        const Rows normed = norm(weights, layout_.output_norm, stream);
        return linear(weights, layout_.head, shape_.vocabulary, normed);
    }

private:
    Rows norm(const std::vector<double>& weights, std::size_t at, const Rows& x) const {
        Rows out = x;
        for (auto& row : out) {
            double sum = 0;
            for (const double value : row)
                sum += value * value;
            const double scale = 1 / std::sqrt(sum / static_cast<double>(row.size()) +
                                               static_cast<double>(shape_.norm_epsilon));
            for (std::size_t i = 0; i < row.size(); ++i)
                row[i] *= scale * weights[at + i];
        }
        return out;
    }

    static Rows linear(const std::vector<double>& weights, std::size_t at, std::size_t to,
                       const Rows& x) {
        Rows out;
        for (const auto& row : x) {
            std::vector<double> made(to);
            for (std::size_t o = 0; o < to; ++o) {
                for (std::size_t i = 0; i < row.size(); ++i)
                    made[o] += weights[at + o * row.size() + i] * row[i];
            }
            out.push_back(std::move(made));
        }
        return out;
    }

    void rotate(Rows& x) const {
        const std::size_t width = shape_.head_width();
        for (std::size_t t = 0; t < x.size(); ++t) {
            for (std::size_t i = 0; i + 1 < x[t].size(); i += 2) {
                const double power = -static_cast<double>(i % width) / static_cast<double>(width);
                const double angle =
                    static_cast<double>(t) * std::pow(static_cast<double>(shape_.rope_base), power);
                const double a = x[t][i];
                const double b = x[t][i + 1];
                x[t][i] = a * std::cos(angle) - b * std::sin(angle);
                x[t][i + 1] = a * std::sin(angle) + b * std::cos(angle);
            }
        }
    }

    void attend(const std::vector<double>& weights, const LayerLayout& layer, const Batch& batch,
                std::size_t row, Rows& stream) const {
        const std::size_t width = shape_.head_width();
        const Rows normed = norm(weights, layer.attention_norm, stream);
        Rows query = linear(weights, layer.query, shape_.embed, normed);
        Rows key = linear(weights, layer.key, shape_.key_width(), normed);
        const Rows value = linear(weights, layer.value, shape_.key_width(), normed);
        rotate(query);
        rotate(key);
        Rows mixed(stream.size(), std::vector<double>(shape_.embed));
        for (std::size_t head = 0; head < shape_.heads; ++head) {
            const std::size_t at = head * width;
            const std::size_t key_at = head / (shape_.heads / shape_.key_heads) * width;
            for (std::size_t t = 0; t < stream.size(); ++t) {
                double total = 0;
                for (std::size_t u = batch.first[row + t]; u <= t; ++u) {
                    double score = 0;
                    for (std::size_t i = 0; i < width; ++i)
                        score += query[t][at + i] * key[u][key_at + i];
                    const double share = std::exp(score / std::sqrt(static_cast<double>(width)));
                    total += share;
                    for (std::size_t i = 0; i < width; ++i)
                        mixed[t][at + i] += share * value[u][key_at + i];
                }
                for (std::size_t i = 0; i < width; ++i)
                    mixed[t][at + i] /= total;
            }
        }
        add(stream, linear(weights, layer.output, shape_.embed, mixed));
    }

    void feed(const std::vector<double>& weights, const LayerLayout& layer, Rows& stream) const {
        const Rows normed = norm(weights, layer.feed_norm, stream);
        Rows gate = linear(weights, layer.gate, shape_.feed_forward, normed);
        const Rows up = linear(weights, layer.up, shape_.feed_forward, normed);
        for (std::size_t t = 0; t < gate.size(); ++t) {
            for (std::size_t i = 0; i < gate[t].size(); ++i)
                gate[t][i] *= up[t][i] / (1 + std::exp(-gate[t][i]));
        }
        add(stream, linear(weights, layer.down, shape_.embed, gate));
    }

    static void add(Rows& stream, const Rows& more) {
        for (std::size_t t = 0; t < stream.size(); ++t) {
            for (std::size_t i = 0; i < stream[t].size(); ++i)
                stream[t][i] += more[t][i];
        }
    }

    Shape shape_;
    const Layout& layout_;
};

}  // namespace molly::train
