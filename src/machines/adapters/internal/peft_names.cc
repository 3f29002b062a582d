#include "adapters/internal/peft_names.h"

#include <array>

#include <fmt/format.h>

namespace molly::adapters {
namespace {

constexpr std::array<std::array<std::string_view, 2>, 7> modules = {{
    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},
    {"self_attn.o_proj", "attn_output"},
    {"mlp.gate_proj", "ffn_gate"},
    {"mlp.up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
}};

constexpr std::string_view root = "base_model.model.";
constexpr std::array<std::array<std::string_view, 2>, 2> factors = {{
    {".lora_A.weight", ".weight.lora_a"},
    {".lora_B.weight", ".weight.lora_b"},
}};

/// Takes one of the ends off; which one, or nothing.
std::optional<std::size_t> take_end(std::string_view& name, std::size_t side) {
    for (std::size_t i = 0; i < factors.size(); ++i) {
        if (!name.ends_with(factors[i][side])) continue;
        name.remove_suffix(factors[i][side].size());
        return i;
    }
    return std::nullopt;
}

/// Layer and module behind `prefix`.
std::optional<std::array<std::string_view, 2>> split_layer(std::string_view name,
                                                           std::string_view prefix) {
    if (!name.starts_with(prefix)) return std::nullopt;
    name.remove_prefix(prefix.size());
    const std::size_t dot = name.find('.');
    if (dot == std::string_view::npos) return std::nullopt;
    return std::array{name.substr(0, dot), name.substr(dot + 1)};
}

}  // namespace

std::optional<std::string> gguf_name(std::string_view name) {
    const auto factor = take_end(name, 0);
    if (!factor) return std::nullopt;
    const std::string_view end = factors[*factor][1];
    for (const std::string_view prefix : {root, std::string_view("model.")})
        if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
    if (name == "lm_head") return fmt::format("output{}", end);
    const auto layer = split_layer(name, "layers.");
    if (!layer) return std::nullopt;
    for (const auto& [theirs, ours] : modules) {
        if ((*layer)[1] == theirs) return fmt::format("blk.{}.{}{}", (*layer)[0], ours, end);
    }
    return std::nullopt;
}

std::optional<std::string> peft_name(std::string_view name) {
    const auto factor = take_end(name, 1);
    if (!factor) return std::nullopt;
    const std::string_view end = factors[*factor][0];
    if (name == "output") return fmt::format("{}lm_head{}", root, end);
    const auto layer = split_layer(name, "blk.");
    if (!layer) return std::nullopt;
    for (const auto& [theirs, ours] : modules) {
        if ((*layer)[1] == ours)
            return fmt::format("{}model.layers.{}.{}{}", root, (*layer)[0], theirs, end);
    }
    return std::nullopt;
}

std::string_view peft_module(std::string_view name) {
    take_end(name, 0);
    for (const std::string_view prefix : {root, std::string_view("model.")})
        if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
    return name;
}

std::string_view peft_target(std::string_view name) {
    const std::string_view module = peft_module(name);
    const std::size_t dot = module.rfind('.');
    return dot == std::string_view::npos ? module : module.substr(dot + 1);
}

bool peft_knows(std::string_view architecture) noexcept {
    return architecture == "llama" || architecture == "qwen2" || architecture == "qwen3";
}

std::uint64_t heads_of(const models::Gguf& base, std::string_view name) {
    if (base.text("general.architecture") != "llama" || !name.ends_with(".lora_b")) return 0;
    const std::uint64_t heads = base.number("llama.attention.head_count");
    const std::uint64_t shared = base.number("llama.attention.head_count_kv");
    if (name.find(".attn_q.") != std::string_view::npos) return heads;
    if (name.find(".attn_k.") != std::string_view::npos) return shared != 0 ? shared : heads;
    return 0;
}

}  // namespace molly::adapters
