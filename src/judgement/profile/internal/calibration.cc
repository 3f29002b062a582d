#include "profile/internal/calibration.h"

#include <algorithm>
#include <cmath>

namespace molly::profile {
namespace {

constexpr std::size_t folds = 5;
constexpr int steps = 400;
constexpr std::size_t bins = 10;

/// Adam: few parameters, all rows in every step.
class Descent {
public:
    explicit Descent(std::size_t size) : mean_(size), square_(size) {}

    void step(std::vector<double>& parameters, const std::vector<double>& gradient) {
        ++count_;
        const double rate = 0.05 * (1.0 - 0.9 * count_ / steps);
        for (std::size_t i = 0; i < parameters.size(); ++i) {
            mean_[i] += 0.1 * (gradient[i] - mean_[i]);
            square_[i] += 0.01 * (gradient[i] * gradient[i] - square_[i]);
            const double mean = mean_[i] / (1 - std::pow(0.9, count_));
            const double square = square_[i] / (1 - std::pow(0.99, count_));
            parameters[i] -= rate * mean / (std::sqrt(square) + 1e-9);
        }
    }

private:
    std::vector<double> mean_;
    std::vector<double> square_;
    int count_ = 0;
};

/// How much of a choice may be fitted.
struct Form {
    std::size_t signs = 1;
    bool bias = false;
};

Choice choice_of(const std::vector<double>& parameters, std::size_t groups, bool bias) {
    Choice choice;
    for (std::size_t i = 0; i < signs_count; ++i)
        choice.slopes[i] = static_cast<float>(parameters[i]);
    if (bias) {
        choice.bias.assign(groups, 0);
        for (std::size_t i = 0; i < groups; ++i)
            choice.bias[i] = static_cast<float>(parameters[signs_count + i]);
    }
    return choice;
}

/// Adds the gradient of one row's loss.
void add_gradient(const Choice& choice, std::span<const std::uint8_t> group_of, std::size_t groups,
                  const ChoiceRow& row, std::vector<double>& gradient) {
    const float factor = choice.factor(row.signs);
    std::vector<double> shares(row.logits.size());
    double highest = -1e30;
    for (std::size_t t = 0; t < shares.size(); ++t) {
        shares[t] = static_cast<double>(row.logits[t]) * factor +
                    (choice.bias.empty() ? 0.0F : choice.bias[group_of[t]]);
        highest = std::max(highest, shares[t]);
    }
    double whole = 0;
    for (double& share : shares)
        whole += share = std::exp(share - highest);
    double right = 1e-12;
    for (std::size_t t = 0; t < shares.size(); ++t) {
        shares[t] /= whole;
        if (group_of[t] == row.right) right += shares[t];
    }
    double along = 0;  // of the loss, for a longer factor
    for (std::size_t t = 0; t < shares.size(); ++t) {
        const double pull = shares[t] - (group_of[t] == row.right ? shares[t] / right : 0);
        along += pull * static_cast<double>(row.logits[t]) * factor;
        if (groups > 0) gradient[signs_count + group_of[t]] += row.weight * pull;
    }
    for (std::size_t i = 0; i < signs_count; ++i)
        gradient[i] += row.weight * along * static_cast<double>(row.signs[i]);
}

/// Of the rows that `takes` (by their number) names.
template <class Takes>
Choice fit(std::span<const ChoiceRow> rows, std::span<const std::uint8_t> group_of,
           std::size_t groups, const Form& form, const Takes& takes) {
    std::vector<double> parameters(signs_count + groups);
    Descent descent(parameters.size());
    double whole = 1e-9;
    for (std::size_t i = 0; i < rows.size(); ++i)
        whole += takes(i) ? rows[i].weight : 0;
    for (int step = 0; step < steps; ++step) {
        const Choice now = choice_of(parameters, groups, form.bias);
        std::vector<double> gradient(parameters.size());
        for (std::size_t i = 0; i < rows.size(); ++i) {
            if (takes(i)) add_gradient(now, group_of, groups, rows[i], gradient);
        }
        for (std::size_t i = 0; i < gradient.size(); ++i) {
            const bool fitted = i < signs_count ? i < form.signs : form.bias;
            const double penalty = i == 0 ? 0 : 0.01;  // a slope or a bias has to earn its place
            gradient[i] = fitted ? gradient[i] / whole + penalty * parameters[i] : 0;
        }
        descent.step(parameters, gradient);
    }
    return choice_of(parameters, groups, form.bias);
}

/// Sums up losses, and sureness beside success.
class Examiner {
public:
    void add(double share_of_right, double sureness, bool success, double weight) {
        ++rows_;
        whole_ += weight;
        loss_ -= weight * std::log(std::max(share_of_right, 1e-9));
        const auto bin = std::min<std::size_t>(bins - 1, static_cast<std::size_t>(sureness * bins));
        gap_[bin] += weight * (sureness - (success ? 1 : 0));
    }
    Honesty result() const {
        Honesty honesty;
        honesty.rows = rows_;
        const double whole = std::max(whole_, 1e-9);
        honesty.loss = loss_ / whole;
        for (const double gap : gap_)
            honesty.error += std::abs(gap) / whole;
        return honesty;
    }

private:
    std::size_t rows_ = 0;
    double whole_ = 0;
    double loss_ = 0;
    std::array<double, bins> gap_{};
};

Honesty examine(std::span<const ChoiceRow> rows, std::span<const std::uint8_t> group_of,
                std::size_t groups, const Form& form) {
    Examiner examiner;
    for (std::size_t fold = 0; fold < folds; ++fold) {
        const Choice choice =
            fit(rows, group_of, groups, form, [&](std::size_t i) { return i % folds != fold; });
        for (std::size_t i = fold; i < rows.size(); i += folds) {
            const std::vector<float> shares = shares_of(choice, group_of, groups, rows[i]);
            const auto best = std::max_element(shares.begin(), shares.end());
            examiner.add(shares[rows[i].right], *best, best - shares.begin() == rows[i].right,
                         rows[i].weight);
        }
    }
    return examiner.result();
}

double logistic(const std::vector<double>& parameters, const ScopeSigns& signs) noexcept {
    double sum = 0;
    for (std::size_t i = 0; i < scope_signs_count; ++i)
        sum += parameters[i] * static_cast<double>(signs[i]);
    return 1 / (1 + std::exp(-sum));
}

template <class Takes>
std::vector<double> fit_scope_on(std::span<const ScopeRow> rows, const Takes& takes) {
    std::vector<double> parameters(scope_signs_count);
    parameters[1] = 1;
    Descent descent(parameters.size());
    for (int step = 0; step < steps; ++step) {
        std::vector<double> gradient(parameters.size());
        double whole = 1e-9;
        for (std::size_t i = 0; i < rows.size(); ++i) {
            if (!takes(i)) continue;
            whole += rows[i].weight;
            const double pull = logistic(parameters, rows[i].signs) - (rows[i].outside ? 1 : 0);
            for (std::size_t s = 0; s < gradient.size(); ++s)
                gradient[s] += rows[i].weight * pull * static_cast<double>(rows[i].signs[s]);
        }
        for (std::size_t s = 0; s < gradient.size(); ++s)
            gradient[s] = gradient[s] / whole + (s == 0 ? 0 : 0.001 * parameters[s]);
        descent.step(parameters, gradient);
    }
    return parameters;
}

}  // namespace

Signs signs_of(std::size_t features, float rarity) noexcept {
    return {1, (std::log1p(static_cast<float>(features)) - 5) / 2, (rarity - 5) / 2};
}

float Choice::factor(const Signs& signs) const noexcept {
    float sum = 0;
    for (std::size_t i = 0; i < signs_count; ++i)
        sum += slopes[i] * signs[i];
    return std::exp(std::clamp(sum, -3.0F, 3.0F));
}

std::vector<float> shares_of(const Choice& choice, std::span<const std::uint8_t> group_of,
                             std::size_t groups, const ChoiceRow& row) {
    const float factor = choice.factor(row.signs);
    std::vector<float> values(row.logits.size());
    for (std::size_t t = 0; t < values.size(); ++t)
        values[t] =
            row.logits[t] * factor + (choice.bias.empty() ? 0.0F : choice.bias[group_of[t]]);
    const float highest = *std::max_element(values.begin(), values.end());
    std::vector<float> shares(groups);
    float whole = 0;
    for (std::size_t t = 0; t < values.size(); ++t) {
        const float share = std::exp(values[t] - highest);
        shares[group_of[t]] += share;
        whole += share;
    }
    for (float& share : shares)
        share /= whole;
    return shares;
}

Choice fit_choice(std::span<const ChoiceRow> rows, std::span<const std::uint8_t> group_of,
                  std::size_t groups, Honesty& held_out) {
    held_out = {};
    if (rows.size() < 2 * folds) return {};
    Form best;
    for (const Form form : {Form{1, false}, Form{signs_count, false}, Form{signs_count, true}}) {
        const Honesty honesty = examine(rows, group_of, groups, form);
        // A richer form has to gain something.
        if (held_out.rows > 0 && honesty.loss > held_out.loss - 0.002) continue;
        held_out = honesty;
        best = form;
    }
    return fit(rows, group_of, groups, best, [](std::size_t) { return true; });
}

ScopeSigns fit_scope(std::span<const ScopeRow> rows, Honesty& held_out) {
    held_out = {};
    ScopeSigns signs{};
    signs[1] = 1;
    const auto outside = static_cast<std::size_t>(
        std::count_if(rows.begin(), rows.end(), [](const ScopeRow& row) { return row.outside; }));
    if (outside < folds || rows.size() - outside < folds) return signs;
    Examiner examiner;
    for (std::size_t fold = 0; fold < folds; ++fold) {
        const auto fitted = fit_scope_on(rows, [&](std::size_t i) { return i % folds != fold; });
        for (std::size_t i = fold; i < rows.size(); i += folds) {
            const double share = logistic(fitted, rows[i].signs);
            examiner.add(rows[i].outside ? share : 1 - share, share, rows[i].outside,
                         rows[i].weight);
        }
    }
    held_out = examiner.result();
    const auto fitted = fit_scope_on(rows, [](std::size_t) { return true; });
    for (std::size_t i = 0; i < scope_signs_count; ++i)
        signs[i] = static_cast<float>(fitted[i]);
    return signs;
}

}  // namespace molly::profile
