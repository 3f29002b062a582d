#include "train/internal/lora_layout.h"

#include <cmath>

#include <fmt/format.h>

#include "train/internal/random.h"

namespace molly::train {
namespace {

constexpr std::array<const char*, module_count> module_names = {"query", "key", "value", "output",
                                                                "gate",  "up",  "down"};

const std::array<std::vector<Module>, group_count>& members() {
    static const std::array<std::vector<Module>, group_count> all = {
        std::vector{Module::query, Module::key, Module::value}, std::vector{Module::output},
        std::vector{Module::gate, Module::up}, std::vector{Module::down}};
    return all;
}

}  // namespace

LoraLayout::LoraLayout(const FrozenModel& model, std::size_t rank_wanted,
                       const std::set<Module>& modules)
    : rank(rank_wanted) {
    const auto add = [this](std::string name, std::size_t rows, std::size_t columns, bool first) {
        tensors.push_back({std::move(name), rows, columns, size, first});
        size += rows * columns;
        return tensors.back().offset;
    };
    for (const FrozenLayer& frozen : model.layers()) {
        LoraLayer layer;
        for (std::size_t g = 0; g < group_count; ++g) {
            LoraGroup& group = layer.groups[g];
            group.members = members()[g];
            for (const Module module : group.members)
                if (modules.contains(module)) group.adapted.push_back(module);
            group.a = size;
            for (const Module module : group.adapted)
                add(frozen[module].name + ".lora_a", rank, frozen[module].columns, true);
            for (std::size_t i = 0; i < group.adapted.size(); ++i) {
                const FrozenMatrix& matrix = frozen[group.adapted[i]];
                group.b[i] = add(matrix.name + ".lora_b", matrix.rows, rank, false);
            }
        }
        layers.push_back(std::move(layer));
    }
}

std::vector<float> make_adapter(const LoraLayout& layout, std::uint64_t seed) {
    std::vector<float> out(layout.size);
    std::uint64_t stream = 0;
    for (const LoraTensor& tensor : layout.tensors) {
        Random random(seed, ++stream);
        if (!tensor.first) continue;
        const double bound = 1.0 / std::sqrt(static_cast<double>(tensor.columns));
        for (std::size_t i = 0; i < tensor.rows * tensor.columns; ++i)
            out[tensor.offset + i] = static_cast<float>((2.0 * random.uniform() - 1.0) * bound);
    }
    return out;
}

Result<std::set<Module>> parse_modules(const std::string& names) {
    std::set<Module> out;
    for (std::size_t from = 0; from <= names.size();) {
        const std::size_t comma = std::min(names.find(',', from), names.size());
        const std::string name = names.substr(from, comma - from);
        from = comma + 1;
        bool known = false;
        for (std::size_t m = 0; m < module_count; ++m) {
            const bool attention = m < static_cast<std::size_t>(Module::gate);
            if (name != "all" && name != module_names[m] && !(name == "attention" && attention) &&
                !(name == "feed_forward" && !attention)) {
                continue;
            }
            out.insert(static_cast<Module>(m));
            known = true;
        }
        if (known) continue;
        return fail(Error(ErrorCode::invalid_request,
                          fmt::format("{}: modules are all, attention, feed_forward, {}", name,
                                      fmt::join(module_names, ", ")))
                        .italian(fmt::format("{}: i moduli sono all, attention, feed_forward, {}",
                                             name, fmt::join(module_names, ", ")))
                        .param("modules"));
    }
    return out;
}

const char* name_of(Module module) noexcept {
    return module_names[static_cast<std::size_t>(module)];
}

}  // namespace molly::train
