#pragma once
// How PEFT and GGUF name the factors of one weight, and in which order they keep its rows. Pure.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "models/gguf.h"

namespace molly::adapters {

/// `base_model.model.model.layers.3.self_attn.q_proj.lora_A.weight` ->
/// `blk.3.attn_q.weight.lora_a`; nothing for other names.
std::optional<std::string> gguf_name(std::string_view name);

/// The way back.
std::optional<std::string> peft_name(std::string_view name);

/// The module of a PEFT name: `layers.3.self_attn.q_proj`, and its last part, `q_proj`.
std::string_view peft_module(std::string_view name);
std::string_view peft_target(std::string_view name);

/// Whether Molly knows the names and row order of an architecture.
bool peft_knows(std::string_view architecture) noexcept;

/// The llama architecture keeps the rows of queries and keys in another order than the checkpoint,
/// head by head: the heads of the GGUF factor `name`, or 0 when its rows are as they were.
std::uint64_t heads_of(const models::Gguf& base, std::string_view name);

}  // namespace molly::adapters
