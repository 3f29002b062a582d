#include "train/internal/whole_model.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace molly::train {
namespace {

/// What Pass does not compute; empty: nothing.
std::string lacking(const FrozenModel& model) {
    const FrozenShape& shape = model.shape();
    if (shape.family != "llama") return "the family " + shape.family;
    if (shape.head_width * shape.heads != shape.embed) return "heads that are wider than the model";
    const double pairs = static_cast<double>(shape.head_width) / 2;
    for (const FrozenLayer& layer : model.layers()) {
        if (std::any_of(layer.bias.begin(), layer.bias.end(),
                        [](const auto& bias) { return !bias.empty(); }))
            return "biases";
        for (std::size_t p = 0; p < layer.frequency.size(); ++p) {
            const double plain =
                std::pow(static_cast<double>(shape.rope_base), -static_cast<double>(p) / pairs);
            if (std::abs(static_cast<double>(layer.frequency[p]) / plain - 1) > 1e-5)
                return "scaled RoPE";
        }
    }
    return {};
}

}  // namespace

Result<Shape> shape_of(const FrozenModel& model, std::uint32_t context) {
    const std::string missing = lacking(model);
    if (!missing.empty()) {
        return fail(Error(ErrorCode::unsupported,
                          fmt::format("{} has {}, which training of all weights does not do; train "
                                      "an adapter instead: molly train lora",
                                      model.name(), missing))
                        .italian(fmt::format("{} ha {}, che l'addestramento di tutti i pesi non "
                                             "sa fare; addestra un adattatore: molly train lora",
                                             model.name(), missing)));
    }
    const FrozenShape& from = model.shape();
    Shape shape;
    shape.vocabulary = from.vocabulary;
    shape.embed = from.embed;
    shape.layers = static_cast<std::uint32_t>(model.layers().size());
    shape.heads = from.heads;
    shape.key_heads = from.key_heads;
    shape.feed_forward = from.feed_forward;
    shape.context = context;
    shape.tied = model.tied();
    shape.rope_base = from.rope_base;
    shape.norm_epsilon = from.norm_epsilon;
    TRY_DO(shape.check());
    return shape;
}

std::vector<float> weights_of(const FrozenModel& model, const Layout& layout) {
    std::vector<float> out(layout.size);
    const auto matrix = [&out](const FrozenMatrix& from, std::size_t to) {
        from.read(0, from.rows, out.data() + to, from.columns);
    };
    const auto vector = [&out](const std::vector<float>& from, std::size_t to) {
        std::copy(from.begin(), from.end(), out.begin() + static_cast<std::ptrdiff_t>(to));
    };
    matrix(model.embedding(), layout.embedding);
    for (std::size_t i = 0; i < layout.layers.size(); ++i) {
        const FrozenLayer& from = model.layers()[i];
        const LayerLayout& to = layout.layers[i];
        vector(from.attention_norm, to.attention_norm);
        matrix(from[Module::query], to.query);
        matrix(from[Module::key], to.key);
        matrix(from[Module::value], to.value);
        matrix(from[Module::output], to.output);
        vector(from.feed_norm, to.feed_norm);
        matrix(from[Module::gate], to.gate);
        matrix(from[Module::up], to.up);
        matrix(from[Module::down], to.down);
    }
    vector(model.output_norm(), layout.output_norm);
    if (!model.tied()) matrix(model.head(), layout.head);
    return out;
}

}  // namespace molly::train
