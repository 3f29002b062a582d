#include "profile/internal/model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

namespace molly::profile {
namespace {

constexpr std::array<char, 8> magic = {'m', 'o', 'l', 'l', 'y', 'p', 'r', 'f'};
constexpr std::uint32_t version = 2;
constexpr unsigned row_bits_max = 20;
constexpr std::uint32_t background_max = 4096;

struct Header {
    std::array<char, 8> magic{};
    std::uint32_t version = 0;
    std::uint32_t row_bits = 0;
    std::uint32_t topics = 0;
    std::uint32_t background = 0;
    Signs topic_slopes{};
    std::array<float, domain::fields_count> field_bias{};
    Signs task_slopes{};
    std::array<float, domain::task_types> task_bias{};
    ScopeSigns scope_weights{};
};

Error damaged() {
    return Error(ErrorCode::corrupt,
                 "this is no classifier of this version, or it is damaged; train it again with "
                 "`molly train classifier`")
        .italian(
            "questo non è un classificatore di questa versione, o è danneggiato; addestrarlo "
            "di nuovo con `molly train classifier`");
}

/// Takes values from the front of a file's bytes.
class Bytes {
public:
    explicit Bytes(std::string_view bytes) : left_(bytes) {}

    template <class T>
    bool take(T* out, std::size_t count) {
        static_assert(std::is_trivially_copyable_v<T>);
        if (left_.size() / sizeof(T) < count) return false;
        if (count > 0) std::memcpy(out, left_.data(), count * sizeof(T));
        left_.remove_prefix(count * sizeof(T));
        return true;
    }
    bool empty() const noexcept { return left_.empty(); }

private:
    std::string_view left_;
};

template <class T>
void put(std::string& out, const T* values, std::size_t count) {
    static_assert(std::is_trivially_copyable_v<T>);
    const std::size_t at = out.size();
    out.resize(at + count * sizeof(T));
    if (count > 0) std::memcpy(out.data() + at, values, count * sizeof(T));
}

bool take_topic(Bytes& bytes, Topic& topic) {
    std::array<std::uint8_t, 2> about{};  // field, bytes of the name
    if (!bytes.take(about.data(), about.size()) || about[0] >= domain::fields_count) return false;
    topic.field = static_cast<domain::Field>(about[0]);
    topic.name.resize(about[1]);
    return bytes.take(topic.name.data(), topic.name.size());
}

bool take_background(Bytes& bytes, std::vector<std::uint32_t>& one) {
    std::uint16_t count = 0;
    if (!bytes.take(&count, 1)) return false;
    one.resize(count);
    return bytes.take(one.data(), one.size());
}

/// Adds the bag's weights and gives its mean rarity.
float add_bag(const Model& model, const std::vector<std::uint32_t>& bag,
              Outputs& outputs) noexcept {
    if (bag.empty()) return 0;
    // Vectors of the compiler: at -O2 it makes none of the loop by itself.
    using Narrow [[gnu::vector_size(row_lanes)]] = std::int8_t;
    using Wide [[gnu::vector_size(row_lanes * 2)]] = std::int16_t;
    using LaneSums [[gnu::vector_size(row_lanes * 4)]] = std::int32_t;
    const std::uint32_t mask = (1U << model.row_bits) - 1;
    constexpr std::size_t ahead = 12;
    constexpr std::size_t carry = 200;  // rows of at most 127 that 16 bits hold
    LaneSums total{};
    std::uint32_t rarity = 0;
    for (std::size_t at = 0; at < bag.size();) {
        Wide part{};
        const std::size_t end = std::min(bag.size(), at + carry);
        for (; at < end; ++at) {
            if (at + ahead < bag.size()) __builtin_prefetch(&model.rows[bag[at + ahead] & mask]);
            Narrow row;
            std::memcpy(&row, model.rows[bag[at] & mask].data(), sizeof row);
            part += __builtin_convertvector(row, Wide);
            rarity += static_cast<std::uint8_t>(row[rarity_lane]);
        }
        total += __builtin_convertvector(part, LaneSums);
    }
    const float share = 1.0F / std::sqrt(static_cast<float>(bag.size()));
    for (std::size_t lane = 0; lane < rarity_lane; ++lane)
        outputs[lane] += static_cast<float>(total[lane]) * model.scale[lane] * share;
    return static_cast<float>(rarity) / (rarity_unit * static_cast<float>(bag.size()));
}

/// Softmax in place.
void normalise(std::span<float> logits) noexcept {
    const float highest = *std::max_element(logits.begin(), logits.end());
    float sum = 0;
    for (float& logit : logits) {
        logit = std::exp(logit - highest);
        sum += logit;
    }
    for (float& logit : logits)
        logit /= sum;
}

bool finite(std::span<const float> values) noexcept {
    return std::all_of(values.begin(), values.end(), [](float one) { return std::isfinite(one); });
}

float sigmoid(float logit) noexcept {
    return 1.0F / (1.0F + std::exp(-logit));
}

}  // namespace

Result<Model> model_from(std::string_view bytes) {
    Bytes left(bytes);
    Header header;
    Model model;
    if (!left.take(&header, 1) || header.magic != magic || header.version != version ||
        header.row_bits == 0 || header.row_bits > row_bits_max || header.topics == 0 ||
        header.topics > topics_max || header.background > background_max ||
        !finite(header.topic_slopes) || !finite(header.field_bias) || !finite(header.task_slopes) ||
        !finite(header.task_bias) || !finite(header.scope_weights))
        return fail(damaged());
    model.row_bits = header.row_bits;
    model.topic_choice.slopes = header.topic_slopes;
    model.topic_choice.bias.assign(header.field_bias.begin(), header.field_bias.end());
    model.task_choice.slopes = header.task_slopes;
    model.task_choice.bias.assign(header.task_bias.begin(), header.task_bias.end());
    model.scope_weights = header.scope_weights;
    model.topics.resize(header.topics);
    for (Topic& topic : model.topics) {
        if (!take_topic(left, topic)) return fail(damaged());
    }
    model.rows.resize(std::size_t{1} << model.row_bits);
    if (!left.take(model.scale.data(), row_lanes) || !left.take(model.bias.data(), row_lanes) ||
        !left.take(model.rows.data(), model.rows.size()))
        return fail(damaged());
    model.background.resize(header.background);
    for (auto& one : model.background) {
        if (!take_background(left, one)) return fail(damaged());
    }
    if (!left.empty()) return fail(damaged());
    return model;
}

std::string to_bytes(const Model& model) {
    std::string out;
    Header header = {.magic = magic,
                     .version = version,
                     .row_bits = model.row_bits,
                     .topics = static_cast<std::uint32_t>(model.topics.size()),
                     .background = static_cast<std::uint32_t>(model.background.size()),
                     .topic_slopes = model.topic_choice.slopes,
                     .task_slopes = model.task_choice.slopes,
                     .scope_weights = model.scope_weights};
    std::copy(model.topic_choice.bias.begin(), model.topic_choice.bias.end(),
              header.field_bias.begin());
    std::copy(model.task_choice.bias.begin(), model.task_choice.bias.end(),
              header.task_bias.begin());
    put(out, &header, 1);
    for (const Topic& topic : model.topics) {
        const std::string name = topic.name.substr(0, 255);
        const std::array<std::uint8_t, 2> about = {static_cast<std::uint8_t>(topic.field),
                                                   static_cast<std::uint8_t>(name.size())};
        put(out, about.data(), about.size());
        out += name;
    }
    put(out, model.scale.data(), row_lanes);
    put(out, model.bias.data(), row_lanes);
    put(out, model.rows.data(), model.rows.size());
    for (const auto& one : model.background) {
        const auto count = static_cast<std::uint16_t>(std::min<std::size_t>(one.size(), 0xFFFF));
        put(out, &count, 1);
        put(out, one.data(), count);
    }
    return out;
}

Sums sum_rows(const Model& model, const Features& features) noexcept {
    Sums sums{.outputs = model.bias};
    const float rarity = add_bag(model, features.whole, sums.outputs);
    add_bag(model, features.edges, sums.outputs);
    sums.signs = signs_of(features.whole.size(), rarity);
    return sums;
}

ScopeSigns scope_signs_of(const Model& model, const Sums& sums, const Reading& reading) noexcept {
    const float largest = *std::max_element(reading.topics.begin(), reading.topics.end());
    const auto other = static_cast<std::size_t>(domain::Field::other);
    return {1,
            sums.outputs[model.lanes().scope()],
            sums.signs[1],
            sums.signs[2],
            largest,
            reading.fields[other]};
}

Reading reading_of(const Model& model, const Sums& sums) {
    const Lanes lanes = model.lanes();
    const Outputs& outputs = sums.outputs;
    Reading reading;
    reading.topics.resize(lanes.topics);
    const float topics_factor = model.topic_choice.factor(sums.signs);
    for (std::size_t i = 0; i < lanes.topics; ++i) {
        const auto field = static_cast<std::size_t>(model.topics[i].field);
        reading.topics[i] = outputs[i] * topics_factor +
                            (model.topic_choice.bias.empty() ? 0 : model.topic_choice.bias[field]);
    }
    normalise(reading.topics);
    for (std::size_t i = 0; i < lanes.topics; ++i)
        reading.fields[static_cast<std::size_t>(model.topics[i].field)] += reading.topics[i];
    const float tasks_factor = model.task_choice.factor(sums.signs);
    for (std::size_t i = 0; i < domain::task_types; ++i) {
        reading.tasks[i] = outputs[lanes.tasks() + i] * tasks_factor +
                           (model.task_choice.bias.empty() ? 0 : model.task_choice.bias[i]);
    }
    normalise(reading.tasks);
    reading.difficulty = sigmoid(outputs[lanes.difficulty()]);
    float scope = 0;
    const ScopeSigns signs = scope_signs_of(model, sums, reading);
    for (std::size_t i = 0; i < scope_signs_count; ++i)
        scope += signs[i] * model.scope_weights[i];
    reading.out_of_scope = sigmoid(scope);
    return reading;
}

}  // namespace molly::profile
