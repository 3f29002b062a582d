#include "profile/prototype.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include <fmt/format.h>

#include "profile/internal/linear_classifier.h"

namespace molly::profile {
namespace {

constexpr std::size_t prompts_min = 5;
constexpr std::size_t features_max = 4096;  // of the middle

using Weights = std::unordered_map<std::uint32_t, float>;

/// tf-idf of a text's features, of length one.
Weights weights_of(const Model& model, const std::vector<std::uint32_t>& features) {
    const std::uint32_t mask = (1U << model.row_bits) - 1;
    Weights weights;
    for (const std::uint32_t feature : features)
        weights[feature & mask] += 1;
    double squares = 0;
    for (auto& [row, weight] : weights) {
        const auto rarity = static_cast<std::uint8_t>(model.rows[row][rarity_lane]);
        weight = (1 + std::log(weight)) * static_cast<float>(rarity) / rarity_unit;
        squares += static_cast<double>(weight) * weight;
    }
    const auto length = static_cast<float>(std::sqrt(std::max(squares, 1e-12)));
    for (auto& [row, weight] : weights)
        weight /= length;
    return weights;
}

double dot(const Weights& a, const Weights& b) {
    double sum = 0;
    for (const auto& [row, weight] : a) {
        const auto found = b.find(row);
        if (found != b.end()) sum += static_cast<double>(weight) * found->second;
    }
    return sum;
}

void add(Weights& to, const Weights& from, float times) {
    for (const auto& [row, weight] : from)
        to[row] += weight * times;
}

double length_of(const Weights& weights) {
    double squares = 0;
    for (const auto& [row, weight] : weights)
        squares += static_cast<double>(weight) * weight;
    return std::sqrt(std::max(squares, 1e-12));
}

/// Where the logistic curve between two kinds of nearness lies.
struct Curve {
    double slope = 0;
    double offset = 0;

    double at(double nearness) const noexcept {
        return 1.0 / (1.0 + std::exp(-(slope * nearness + offset)));
    }
};

/// Fits by Newton's method, both kinds weighing the same, with a little damping.
Curve fit(const std::vector<double>& inside, const std::vector<double>& outside) {
    Curve curve;
    constexpr double damping = 1e-3;
    for (int round = 0; round < 40; ++round) {
        double g0 = damping * curve.slope;
        double g1 = 0;
        double h00 = damping;
        double h01 = 0;
        double h11 = 1e-9;
        const auto side = [&](const std::vector<double>& values, double target) {
            for (const double value : values) {
                const double p = curve.at(value);
                const double weight = 1.0 / static_cast<double>(values.size());
                g0 += weight * (p - target) * value;
                g1 += weight * (p - target);
                h00 += weight * p * (1 - p) * value * value;
                h01 += weight * p * (1 - p) * value;
                h11 += weight * p * (1 - p);
            }
        };
        side(inside, 1);
        side(outside, 0);
        const double determinant = h00 * h11 - h01 * h01;
        if (determinant < 1e-12) break;
        curve.slope -= (h11 * g0 - h01 * g1) / determinant;
        curve.offset -= (h00 * g1 - h01 * g0) / determinant;
    }
    return curve;
}

class CentroidPrototype final : public Prototype {
public:
    CentroidPrototype(std::shared_ptr<const LinearClassifier> classifier,
                      std::span<const std::string> prompts)
        : classifier_(std::move(classifier)) {
        const Model& model = classifier_->model();
        std::vector<Weights> each;
        Features features;
        for (const std::string& prompt : prompts) {
            features_of(prompt, features);
            each.push_back(weights_of(model, features.whole));
            add(middle_, each.back(), 1);
        }
        std::vector<double> inside;
        for (const Weights& one : each) {
            // Without itself: how near a prompt lies that the others have not seen.
            Weights others = middle_;
            add(others, one, -1);
            inside.push_back(dot(one, others) / length_of(others));
        }
        shorten();
        std::vector<double> outside;
        for (const auto& background : model.background)
            outside.push_back(nearness(weights_of(model, background)));
        curve_ = fit(inside, outside);
    }

    double share(std::string_view text) const override {
        Features features;
        features_of(text, features);
        return curve_.at(nearness(weights_of(classifier_->model(), features.whole)));
    }

private:
    double nearness(const Weights& weights) const { return dot(weights, middle_); }

    /// Keeps the heaviest features, with length one.
    void shorten() {
        std::vector<std::pair<float, std::uint32_t>> order;
        for (const auto& [row, weight] : middle_)
            order.emplace_back(-weight, row);
        std::sort(order.begin(), order.end());
        for (std::size_t i = features_max; i < order.size(); ++i)
            middle_.erase(order[i].second);
        const double length = length_of(middle_);
        for (auto& [row, weight] : middle_)
            weight = static_cast<float>(weight / length);
    }

    std::shared_ptr<const LinearClassifier> classifier_;
    Weights middle_;
    Curve curve_;
};

}  // namespace

Result<std::shared_ptr<const Prototype>> Prototype::make(std::span<const std::string> prompts) {
    if (prompts.size() < prompts_min) {
        return fail(
            Error(ErrorCode::invalid_request,
                  fmt::format("a specialist needs at least {} example prompts and there are {}",
                              prompts_min, prompts.size()))
                .italian(fmt::format("uno specialista vuole almeno {} richieste d'esempio e ce ne "
                                     "sono {}",
                                     prompts_min, prompts.size())));
    }
    TRY(const std::shared_ptr<const Classifier> classifier, Classifier::built_in());
    auto linear = std::dynamic_pointer_cast<const LinearClassifier>(classifier);
    if (!linear) return fail(ErrorCode::internal, "the built-in classifier is of another kind");
    return std::make_shared<const CentroidPrototype>(std::move(linear), prompts);
}

}  // namespace molly::profile
