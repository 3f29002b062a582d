#include "adapters/peft_export.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "adapters/internal/base_model.h"
#include "adapters/internal/lora_file.h"
#include "adapters/internal/peft_names.h"
#include "base/json.h"

namespace molly::adapters {
namespace {

namespace fs = std::filesystem;

/// One factor on its way: where it lies, and what it is called there and here.
struct Factor {
    std::string name;  // PEFT's
    const models::GgufTensor* tensor = nullptr;
    std::uint64_t heads = 0;  // rows are put back by head; 0: as they are

    std::uint64_t rows() const { return tensor->shape.back(); }
};

Result<std::vector<Factor>> name_factors(const LoraFile& lora, const models::Gguf& base) {
    if (!peft_knows(lora.architecture)) {
        return fail(Error(ErrorCode::unsupported,
                          fmt::format("PEFT's names for the architecture {} are not known here; "
                                      "export the GGUF file",
                                      lora.architecture))
                        .italian(fmt::format("i nomi PEFT dell'architettura {} non sono noti; "
                                             "esportare il file GGUF",
                                             lora.architecture)));
    }
    std::vector<Factor> factors;
    for (const LoraPair& pair : lora.pairs) {
        for (const models::GgufTensor* tensor : {&pair.a, &pair.b}) {
            const auto name = peft_name(tensor->name);
            if (!name) {
                return fail(ErrorCode::unsupported,
                            fmt::format("tensor {}: PEFT has no name for it; export the GGUF file",
                                        tensor->name));
            }
            Factor factor{.name = *name, .tensor = tensor, .heads = heads_of(base, tensor->name)};
            if (factor.heads != 0 && factor.rows() % (factor.heads * 2) != 0) {
                return fail(Error(ErrorCode::conflict,
                                  fmt::format("tensor {}: {} rows do not divide into {} heads",
                                              tensor->name, factor.rows(), factor.heads))
                                .reason("adapter_mismatch"));
            }
            factors.push_back(std::move(factor));
        }
    }
    std::ranges::sort(factors, {}, &Factor::name);
    return factors;
}

std::string upper(std::string text) {
    std::ranges::transform(text, text.begin(), [](char c) {
        return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    });
    return text;
}

/// The length of the header, the header, padded so that numbers are aligned.
std::string header_of(const std::vector<Factor>& factors) {
    json::object header;
    header["__metadata__"] = json::object{{"format", "pt"}};
    std::uint64_t at = 0;
    for (const Factor& factor : factors) {
        const auto& shape = factor.tensor->shape;
        const std::uint64_t end = at + factor.tensor->bytes;
        header[factor.name] = json::object{{"dtype", upper(factor.tensor->type)},
                                           {"shape", json::array{shape[1], shape[0]}},
                                           {"data_offsets", json::array{at, end}}};
        at = end;
    }
    std::string text = molly::to_text(json::value(std::move(header)));
    constexpr std::size_t alignment = 8;
    text.resize((text.size() + alignment - 1) / alignment * alignment, ' ');
    const std::uint64_t length = text.size();
    std::array<char, sizeof length> raw{};
    std::memcpy(raw.data(), &length, sizeof length);
    return std::string(raw.data(), raw.size()) + text;
}

/// Each head's rows: what llama.cpp's converter interleaved becomes first half and second half.
std::string restore(const std::string& rows, const Factor& factor) {
    const std::uint64_t row_bytes = factor.tensor->bytes / factor.rows();
    const std::uint64_t half = factor.rows() / factor.heads / 2;
    std::string ordered;
    ordered.reserve(rows.size());
    for (std::uint64_t head = 0; head < factor.heads; ++head)
        for (std::uint64_t side = 0; side < 2; ++side)
            for (std::uint64_t i = 0; i < half; ++i)
                ordered.append(rows, (head * 2 * half + i * 2 + side) * row_bytes, row_bytes);
    return ordered;
}

Error no_room(const fs::path& file) {
    return Error(ErrorCode::exhausted,
                 fmt::format("cannot write {}; free some space on the disk", file.string()))
        .italian(fmt::format("impossibile scrivere {}; liberare spazio", file.string()));
}

Result<void> write_weights(const fs::path& adapter, const LoraFile& lora,
                           const std::vector<Factor>& factors, const fs::path& file) {
    std::ifstream in(adapter, std::ios::binary);
    std::ofstream out(file, std::ios::binary | std::ios::trunc);
    out << header_of(factors);
    for (const Factor& factor : factors) {
        std::string rows(factor.tensor->bytes, '\0');
        in.seekg(static_cast<std::streamoff>(lora.data_offset + factor.tensor->offset));
        in.read(rows.data(), static_cast<std::streamsize>(rows.size()));
        if (!in) {
            return fail(ErrorCode::corrupt,
                        fmt::format("{} ends inside a tensor; import it again", adapter.string()));
        }
        out << (factor.heads != 0 ? restore(rows, factor) : rows);
    }
    if (out.flush()) return {};
    return fail(no_room(file));
}

json::value whole_where_it_is(double number) {
    const auto whole = static_cast<std::int64_t>(number);
    return static_cast<double>(whole) == number ? json::value(whole) : json::value(number);
}

Result<void> write_config(const LoraFile& lora, const std::vector<Factor>& factors,
                          const std::string& base_name, const fs::path& file) {
    std::uint64_t rank = 0;
    for (const LoraPair& pair : lora.pairs)
        rank = std::max(rank, pair.a.shape[1]);
    std::set<std::string_view> targets;
    json::object ranks;
    json::object alphas;
    for (const Factor& factor : factors) {
        targets.insert(peft_target(factor.name));
        const bool is_a = factor.name.ends_with(".lora_A.weight");
        if (!is_a || factor.tensor->shape[1] == rank) continue;
        ranks[peft_module(factor.name)] = factor.tensor->shape[1];
        if (lora.alpha <= 0) alphas[peft_module(factor.name)] = factor.tensor->shape[1];
    }
    json::array modules;
    for (const std::string_view target : targets)
        modules.emplace_back(target);
    json::object config;
    config["peft_type"] = "LORA";
    config["task_type"] = "CAUSAL_LM";
    config["base_model_name_or_path"] = base_name;
    config["r"] = rank;
    // A GGUF file without alpha means a scale of 1.
    config["lora_alpha"] =
        whole_where_it_is(lora.alpha > 0 ? lora.alpha : static_cast<double>(rank));
    config["lora_dropout"] = 0.0;
    config["bias"] = "none";
    config["fan_in_fan_out"] = false;
    config["inference_mode"] = true;
    config["use_rslora"] = false;
    config["use_dora"] = false;
    config["target_modules"] = std::move(modules);
    config["rank_pattern"] = std::move(ranks);
    config["alpha_pattern"] = std::move(alphas);
    std::ofstream out(file, std::ios::binary | std::ios::trunc);
    out << molly::to_text(json::value(std::move(config))) << '\n';
    if (out.flush()) return {};
    return fail(no_room(file));
}

}  // namespace

Result<void> write_peft(const fs::path& adapter, const models::Gguf& base,
                        const std::string& base_name, const fs::path& folder) {
    TRY(const LoraFile lora, read_lora(adapter));
    TRY(const auto factors, name_factors(lora, base));
    std::error_code error;
    fs::create_directories(folder, error);
    TRY_DO(write_weights(adapter, lora, factors, folder / "adapter_model.safetensors"));
    return write_config(lora, factors, base_name, folder / "adapter_config.json");
}

Result<fs::path> export_peft(const Registry& registry, const fs::path& data, std::string_view id,
                             const fs::path& base, const fs::path& folder) {
    TRY(const Manifest manifest, registry.find(id));
    TRY(const BaseModel found, find_base(data, base, manifest.base));
    const fs::path place = folder / fmt::format("{}-{}", manifest.name, manifest.version);
    TRY_DO(write_peft(registry.file_of(manifest), found.gguf, manifest.base.name, place));
    return place;
}

}  // namespace molly::adapters
