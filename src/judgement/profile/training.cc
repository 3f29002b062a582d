#include "profile/training.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "profile/internal/model.h"

namespace molly::profile {
namespace {

using FloatRow = std::array<float, row_lanes>;

struct Bags {
    Features features;
    const Example* example = nullptr;
    float balance = 1;  // weight of what it is about, so that no field drowns the others
};

float sigmoid(float logit) noexcept {
    return 1.0F / (1.0F + std::exp(-logit));
}

/// Descends by AdaGrad on rows that examples share.
class Trainer {
public:
    Trainer(const TrainingRows& rows, const TrainOptions& options)
        : options_(options),
          topics_(rows.topics),
          lanes_{rows.topics.size()},
          rows_(std::size_t{1} << options.row_bits),
          squares_(rows_.size()),
          random_(options.seed) {}

    void step(const Bags& bags, double progress) {
        thin(bags.features.whole, whole_);
        thin(bags.features.edges, edges_);
        FloatRow outputs = bias_;
        add(whole_, outputs);
        add(edges_, outputs);
        FloatRow gradient{};
        derive(*bags.example, bags.balance, outputs, gradient);
        const auto rate = static_cast<float>(options_.rate * (1.0 - 0.9 * progress));
        for (std::size_t lane = 0; lane < lanes_.count(); ++lane) {
            bias_squares_[lane] += gradient[lane] * gradient[lane];
            bias_[lane] -= 0.1F * rate * gradient[lane] / std::sqrt(bias_squares_[lane] + 1e-3F);
        }
        descend(whole_, gradient, rate);
        descend(edges_, gradient, rate);
    }

    /// The weights as small integers, one scale for each lane.
    Model round() const {
        Model model;
        model.topics = topics_;
        model.row_bits = options_.row_bits;
        model.bias = bias_;
        model.rows.resize(rows_.size());
        for (std::size_t lane = 0; lane < lanes_.count(); ++lane) {
            double squares = 0;
            std::size_t used = 0;
            for (const FloatRow& row : rows_) {
                squares += static_cast<double>(row[lane]) * row[lane];
                used += row[lane] != 0 ? 1U : 0U;
            }
            // Ten deviations; the few weights beyond are cut.
            const double deviation =
                std::sqrt(squares / std::max<double>(1, static_cast<double>(used)));
            model.scale[lane] = static_cast<float>(std::max(deviation * 10, 1e-6) / 127);
            for (std::size_t at = 0; at < rows_.size(); ++at) {
                const float whole = std::round(rows_[at][lane] / model.scale[lane]);
                model.rows[at][lane] = static_cast<std::int8_t>(std::clamp(whole, -127.0F, 127.0F));
            }
        }
        return model;
    }

private:
    void thin(const std::vector<std::uint32_t>& from, std::vector<std::uint32_t>& to) {
        const auto dropped = static_cast<std::uint32_t>(options_.feature_dropout * 4294967295.0);
        const std::uint32_t mask = (1U << options_.row_bits) - 1;
        to.clear();
        for (const std::uint32_t feature : from) {
            if (random_() >= dropped) to.push_back(feature & mask);
        }
    }

    static float share(const std::vector<std::uint32_t>& bag) noexcept {
        return bag.empty() ? 0 : 1.0F / std::sqrt(static_cast<float>(bag.size()));
    }

    void add(const std::vector<std::uint32_t>& bag, FloatRow& outputs) const noexcept {
        FloatRow total{};
        for (const std::uint32_t feature : bag) {
            const FloatRow& row = rows_[feature];
            for (std::size_t lane = 0; lane < row_lanes; ++lane)
                total[lane] += row[lane];
        }
        for (std::size_t lane = 0; lane < row_lanes; ++lane)
            outputs[lane] += total[lane] * share(bag);
    }

    void descend(const std::vector<std::uint32_t>& bag, const FloatRow& gradient, float rate) {
        FloatRow step{};
        for (std::size_t lane = 0; lane < row_lanes; ++lane)
            step[lane] = gradient[lane] * share(bag);
        const auto decay = static_cast<float>(options_.decay);
        for (const std::uint32_t feature : bag) {
            FloatRow& row = rows_[feature];
            FloatRow& squares = squares_[feature];
            for (std::size_t lane = 0; lane < row_lanes; ++lane) {
                squares[lane] += step[lane] * step[lane];
                row[lane] -=
                    rate * (step[lane] / std::sqrt(squares[lane] + 1e-6F) + decay * row[lane]);
            }
        }
    }

    /// Of the cross entropies of what is known.
    void derive(const Example& example, float balance, const FloatRow& outputs,
                FloatRow& gradient) const {
        if (!example.topics.empty())
            derive_choice(outputs, 0, lanes_.topics, example.topics, gradient);
        for (std::size_t lane = 0; lane < lanes_.topics; ++lane)
            gradient[lane] *= balance;
        if (example.task) {
            derive_choice(outputs, lanes_.tasks(), domain::task_types,
                          {static_cast<std::uint8_t>(*example.task)}, gradient);
        }
        if (example.difficulty) {
            const std::size_t lane = lanes_.difficulty();
            gradient[lane] = sigmoid(outputs[lane]) - *example.difficulty;
        }
        if (example.out_of_scope) {
            const std::size_t lane = lanes_.scope();
            gradient[lane] = sigmoid(outputs[lane]) - (*example.out_of_scope ? 1.0F : 0.0F);
        }
        for (float& one : gradient)
            one *= example.weight;
    }

    /// One of `count` lanes from `begin` on is right, and `right` are those that may be.
    static void derive_choice(const FloatRow& outputs, std::size_t begin, std::size_t count,
                              const std::vector<std::uint8_t>& right, FloatRow& gradient) {
        const auto first = outputs.begin() + static_cast<std::ptrdiff_t>(begin);
        const float highest = *std::max_element(first, first + static_cast<std::ptrdiff_t>(count));
        float sum = 0;
        for (std::size_t i = 0; i < count; ++i) {
            gradient[begin + i] = std::exp(outputs[begin + i] - highest);
            sum += gradient[begin + i];
        }
        float held = 1e-9F;
        for (std::size_t i = 0; i < count; ++i)
            gradient[begin + i] /= sum;
        for (const std::uint8_t one : right)
            held += gradient[begin + one];
        for (const std::uint8_t one : right)
            gradient[begin + one] -= gradient[begin + one] / held;
    }

    const TrainOptions& options_;
    const std::vector<Topic>& topics_;
    Lanes lanes_;
    std::vector<FloatRow> rows_;
    std::vector<FloatRow> squares_;
    FloatRow bias_{};
    FloatRow bias_squares_{};
    std::mt19937 random_;
    std::vector<std::uint32_t> whole_;
    std::vector<std::uint32_t> edges_;
};

/// How rare each row is among the examples, where the model keeps it.
void put_rarities(const std::vector<Bags>& examples, Model& model) {
    const std::uint32_t mask = (1U << model.row_bits) - 1;
    std::vector<std::uint32_t> seen(model.rows.size());
    std::vector<std::uint32_t> last(model.rows.size());
    std::uint32_t number = 0;
    for (const Bags& bags : examples) {
        ++number;
        for (const std::uint32_t feature : bags.features.whole) {
            if (last[feature & mask] == number) continue;
            last[feature & mask] = number;
            ++seen[feature & mask];
        }
    }
    for (std::size_t at = 0; at < seen.size(); ++at) {
        const double rarity = std::log((1.0 + number) / (1.0 + seen[at])) * rarity_unit;
        const auto whole = static_cast<std::uint8_t>(std::clamp(rarity, 0.0, 255.0));
        model.rows[at][rarity_lane] = static_cast<std::int8_t>(whole);
    }
}

ChoiceRow choice_row(const Sums& sums, std::size_t begin, std::size_t count, std::size_t right,
                     float weight) {
    ChoiceRow row;
    row.logits.assign(sums.outputs.begin() + static_cast<std::ptrdiff_t>(begin),
                      sums.outputs.begin() + static_cast<std::ptrdiff_t>(begin + count));
    row.signs = sums.signs;
    row.right = static_cast<std::uint8_t>(right);
    row.weight = weight;
    return row;
}

/// Makes the heads honest on `examples`, which trained no weight.
Honesties calibrate(const std::vector<Bags>& examples, Model& model) {
    const Lanes lanes = model.lanes();
    std::vector<ChoiceRow> topics;
    std::vector<ChoiceRow> tasks;
    std::vector<Sums> all;
    for (const Bags& bags : examples) {
        const Example& example = *bags.example;
        all.push_back(sum_rows(model, bags.features));
        // What is told is the field, so that is what must be calibrated.
        if (!example.topics.empty()) {
            const auto field = static_cast<std::size_t>(model.topics[example.topics.front()].field);
            topics.push_back(choice_row(all.back(), 0, lanes.topics, field, example.weight));
        }
        if (example.task) {
            tasks.push_back(choice_row(all.back(), lanes.tasks(), domain::task_types,
                                       static_cast<std::size_t>(*example.task), example.weight));
        }
    }
    Honesties honesties;
    std::vector<std::uint8_t> field_of;
    for (const Topic& topic : model.topics)
        field_of.push_back(static_cast<std::uint8_t>(topic.field));
    std::vector<std::uint8_t> itself(domain::task_types);
    std::iota(itself.begin(), itself.end(), std::uint8_t{0});
    model.topic_choice = fit_choice(topics, field_of, domain::fields_count, honesties.fields);
    model.task_choice = fit_choice(tasks, itself, domain::task_types, honesties.tasks);
    std::vector<ScopeRow> scopes;
    for (std::size_t i = 0; i < examples.size(); ++i) {
        const Example& example = *examples[i].example;
        if (!example.out_of_scope) continue;
        scopes.push_back({.signs = scope_signs_of(model, all[i], reading_of(model, all[i])),
                          .outside = *example.out_of_scope,
                          .weight = example.weight});
    }
    model.scope_weights = fit_scope(scopes, honesties.scope);
    return honesties;
}

std::vector<Bags> bags_of(const std::vector<Example>& examples) {
    std::vector<Bags> out(examples.size());
    for (std::size_t i = 0; i < examples.size(); ++i) {
        features_of(examples[i].text, out[i].features);
        out[i].example = &examples[i];
    }
    return out;
}

/// Fields of many rows weigh less, by the root of their share.
void balance(const std::vector<Topic>& topics, std::vector<Bags>& examples) {
    domain::FieldShares mass{};
    double whole = 0;
    const auto field_of = [&](const Bags& bags) {
        return static_cast<std::size_t>(topics[bags.example->topics.front()].field);
    };
    for (const Bags& bags : examples) {
        if (bags.example->topics.empty()) continue;
        mass[field_of(bags)] += bags.example->weight;
        whole += bags.example->weight;
    }
    const double even = whole / domain::fields_count;
    for (Bags& bags : examples) {
        if (bags.example->topics.empty()) continue;
        const double share = even / std::max(mass[field_of(bags)], 1.0F);
        bags.balance = static_cast<float>(std::clamp(std::sqrt(share), 0.2, 5.0));
    }
}

void keep_background(const std::vector<Bags>& examples, std::uint32_t wanted, Model& model) {
    const std::size_t stride = std::max<std::size_t>(1, examples.size() / std::max(1U, wanted));
    for (std::size_t at = 0; at < examples.size() && model.background.size() < wanted;
         at += stride) {
        auto features = examples[at].features.whole;
        if (features.size() > 96) features.resize(96);
        model.background.push_back(std::move(features));
    }
}

}  // namespace

Result<Trained> train(const TrainingRows& rows, const TrainOptions& options,
                      const std::function<void(double)>& watch) {
    if (rows.train.empty() || rows.topics.empty() || rows.topics.size() > topics_max ||
        options.row_bits < 8 || options.row_bits > 20) {
        return fail(Error(ErrorCode::invalid_request,
                          "a classifier needs rows, topics (49 at most) and 8 to 20 row bits")
                        .italian("un classificatore vuole righe, argomenti (al massimo 49) e da 8 "
                                 "a 20 bit di righe"));
    }
    std::vector<Bags> examples = bags_of(rows.train);
    balance(rows.topics, examples);
    Trainer trainer(rows, options);
    std::vector<std::uint32_t> order(examples.size());
    std::iota(order.begin(), order.end(), 0U);
    std::mt19937 random(options.seed);
    const double steps = static_cast<double>(options.epochs) * static_cast<double>(order.size());
    double done = 0;
    for (std::uint32_t epoch = 0; epoch < options.epochs; ++epoch) {
        // By hand: the standard leaves it open how std::shuffle draws.
        for (std::size_t i = order.size() - 1; i > 0; --i)
            std::swap(order[i], order[random() % (i + 1)]);
        for (const std::uint32_t at : order)
            trainer.step(examples[at], done++ / steps);
        if (watch) watch(done / steps);
    }
    Model model = trainer.round();
    put_rarities(examples, model);
    Trained trained;
    trained.held_out =
        calibrate(bags_of(rows.calibrate.empty() ? rows.train : rows.calibrate), model);
    keep_background(examples, options.background, model);
    trained.bytes = to_bytes(model);
    return trained;
}

}  // namespace molly::profile
