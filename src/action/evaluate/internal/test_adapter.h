#pragma once
// A GGUF LoRA file of the test model's first layer, written by hand.
#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace molly::evaluate {

/// Writes an adapter of rank 4 whose numbers are all `value`.
inline void write_test_adapter(const std::filesystem::path& file, float value) {
    constexpr std::uint64_t width = 96, rank = 4;
    std::string out = "GGUF";
    const auto number = [&out](auto item) {
        std::array<char, sizeof item> raw{};
        std::memcpy(raw.data(), &item, sizeof item);
        out.append(raw.data(), raw.size());
    };
    const auto text = [&](std::string_view item) {
        number(std::uint64_t{item.size()});
        out += item;
    };
    constexpr std::uint32_t string_tag = 8, float_tag = 6;
    const auto value_of = [&](std::string_view key, std::string_view item) {
        text(key);
        number(string_tag);
        text(item);
    };
    number(std::uint32_t{3});
    number(std::uint64_t{2});
    number(std::uint64_t{4});
    value_of("general.type", "adapter");
    value_of("general.architecture", "llama");
    value_of("adapter.type", "lora");
    text("adapter.lora.alpha");
    number(float_tag);
    number(8.0F);
    std::uint64_t offset = 0;
    const auto tensor = [&](std::string_view name, std::uint64_t columns, std::uint64_t rows) {
        text(name);
        number(std::uint32_t{2});
        number(columns);
        number(rows);
        number(std::uint32_t{0});
        number(offset);
        offset += columns * rows * sizeof value;
    };
    tensor("blk.0.attn_q.weight.lora_a", width, rank);
    tensor("blk.0.attn_q.weight.lora_b", rank, width);
    out.resize((out.size() + 31) / 32 * 32);
    for (std::uint64_t i = 0; i < 2 * width * rank; ++i)
        number(value);
    std::ofstream(file, std::ios::binary) << out;
}

}  // namespace molly::evaluate
