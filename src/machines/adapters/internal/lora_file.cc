#include "adapters/internal/lora_file.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <span>

#include <fmt/format.h>

namespace molly::adapters {
namespace {

namespace fs = std::filesystem;
using models::Gguf;
using models::GgufTensor;

constexpr std::string_view suffix_a = ".lora_a";
constexpr std::string_view suffix_b = ".lora_b";

std::unexpected<Error> wrong_tensor(ErrorCode code, const std::string& tensor,
                                    std::string_view what, std::string_view cosa) {
    return fail(Error(code, fmt::format("tensor {}: {}", tensor, what))
                    .reason("adapter_mismatch")
                    .italian(fmt::format("tensore {}: {}", tensor, cosa)));
}

std::string shape_text(const GgufTensor& tensor) {
    std::string text;
    for (const std::uint64_t length : tensor.shape)
        text += (text.empty() ? "" : " x ") + std::to_string(length);
    return text;
}

double real_value(const Gguf& gguf, std::string_view key) {
    const auto found = gguf.values.find(key);
    if (found == gguf.values.end()) return 0;
    const auto* value = std::get_if<double>(&found->second);
    return value != nullptr ? *value : static_cast<double>(gguf.number(key));
}

Result<void> check_kind(const Gguf& gguf) {
    const std::string type = gguf.text("general.type");
    const std::string kind = gguf.text("adapter.type");
    if (type == "adapter" && kind == "lora") return {};
    return fail(Error(ErrorCode::invalid_request,
                      fmt::format("this GGUF file is no LoRA adapter (general.type is `{}`, "
                                  "adapter.type is `{}`); models are imported with molly models "
                                  "import",
                                  type, kind))
                    .italian("questo file GGUF non è un adattatore LoRA; i modelli si importano "
                             "con molly models import"));
}

/// Pairs by the weight that they change.
Result<std::map<std::string, LoraPair>> pair_up(const Gguf& gguf) {
    std::map<std::string, LoraPair> pairs;
    for (const GgufTensor& tensor : gguf.tensors) {
        const bool is_a = tensor.name.ends_with(suffix_a);
        if (!is_a && !tensor.name.ends_with(suffix_b)) {
            return wrong_tensor(ErrorCode::unsupported, tensor.name,
                                "it is neither a lora_a nor a lora_b factor; train linear layers "
                                "only",
                                "non è un fattore lora_a né lora_b; allenare solo gli strati "
                                "lineari");
        }
        const std::string weight = tensor.name.substr(0, tensor.name.size() - suffix_a.size());
        LoraPair& pair = pairs[weight];
        pair.weight = weight;
        GgufTensor& factor = is_a ? pair.a : pair.b;
        factor = tensor;
        // Files do not say a last dimension of 1.
        if (is_a && factor.shape.size() == 1) factor.shape.push_back(1);
    }
    return pairs;
}

Result<void> check_pair(const LoraPair& pair) {
    const auto missing = [&](const GgufTensor& tensor) { return tensor.name.empty(); };
    if (missing(pair.a) || missing(pair.b)) {
        return wrong_tensor(ErrorCode::corrupt, pair.weight,
                            missing(pair.a) ? "its lora_a is missing" : "its lora_b is missing",
                            "manca uno dei due fattori");
    }
    for (const GgufTensor* tensor : {&pair.a, &pair.b}) {
        if (tensor->shape.size() != 2) {
            return wrong_tensor(ErrorCode::unsupported, tensor->name,
                                "a factor has two dimensions; experts cannot be adapted yet",
                                "un fattore ha due dimensioni");
        }
        if (tensor->type != "f32" && tensor->type != "f16" && tensor->type != "bf16") {
            return wrong_tensor(
                ErrorCode::unsupported, tensor->name,
                fmt::format("its numbers are {}; write f32, f16 or bf16", tensor->type),
                "numeri in un formato non previsto; usare f32, f16 o bf16");
        }
    }
    const std::uint64_t rank = pair.a.shape[1];
    if (rank != pair.b.shape[0]) {
        return wrong_tensor(ErrorCode::corrupt, pair.weight,
                            fmt::format("lora_a has rank {} and lora_b {}", rank, pair.b.shape[0]),
                            "i due fattori hanno rango diverso");
    }
    if (rank > rank_max) {
        return wrong_tensor(ErrorCode::unsupported, pair.weight,
                            fmt::format("rank {}; at most {}", rank, rank_max),
                            fmt::format("rango {}; al più {}", rank, rank_max));
    }
    return {};
}

/// The part of a weight's name that all layers share: `attn_q`.
std::string module_of(std::string_view weight) {
    if (weight.ends_with(".weight")) weight.remove_suffix(7);
    const std::size_t dot = weight.rfind('.');
    return std::string(dot == std::string_view::npos ? weight : weight.substr(dot + 1));
}

float half_to_float(std::uint16_t bits) {
    const int exponent = (bits >> 10U) & 31;
    const int fraction = bits & 1023;
    if (exponent == 31) return fraction == 0 ? INFINITY : NAN;
    return exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                         : std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
}

/// Whether all numbers of a block are finite and within half precision.
bool sound(std::span<const char> block, const std::string& type) {
    constexpr float half_max = 65504;
    const std::size_t width = type == "f32" ? 4 : 2;
    for (std::size_t at = 0; at + width <= block.size(); at += width) {
        float value = 0;
        if (type == "f32") {
            std::memcpy(&value, block.data() + at, 4);
        } else {
            std::uint16_t bits = 0;
            std::memcpy(&bits, block.data() + at, 2);
            if (type == "bf16") {
                const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16U;
                std::memcpy(&value, &wide, 4);
            } else {
                value = half_to_float(bits);
            }
        }
        if (!(std::abs(value) <= half_max)) return false;  // not a number compares false too
    }
    return true;
}

Result<void> check_tensor(std::ifstream& stream, std::uint64_t data_offset,
                          const GgufTensor& tensor) {
    constexpr std::uint64_t block_bytes = 1U << 20U;
    std::vector<char> block(block_bytes);
    stream.seekg(static_cast<std::streamoff>(data_offset + tensor.offset));
    for (std::uint64_t left = tensor.bytes; left > 0;) {
        const std::uint64_t count = std::min(left, block_bytes);
        stream.read(block.data(), static_cast<std::streamsize>(count));
        if (!stream) {
            return wrong_tensor(ErrorCode::corrupt, tensor.name,
                                "the file ends inside it; fetch it again",
                                "il file finisce a metà; scaricarlo di nuovo");
        }
        if (!sound({block.data(), static_cast<std::size_t>(count)}, tensor.type)) {
            return wrong_tensor(ErrorCode::corrupt, tensor.name,
                                "it holds a number that is not finite, or too large for half "
                                "precision; train it again",
                                "contiene un numero non finito o troppo grande; allenare di "
                                "nuovo");
        }
        left -= count;
    }
    return {};
}

}  // namespace

void LoraFile::describe(Manifest& manifest) const {
    std::set<std::string> modules;
    std::uint64_t rank = 0;
    for (const LoraPair& pair : pairs) {
        modules.insert(module_of(pair.weight));
        rank = std::max(rank, pair.a.shape[1]);
    }
    manifest.modules.assign(modules.begin(), modules.end());
    manifest.rank = static_cast<std::uint32_t>(rank);
    manifest.alpha = static_cast<float>(alpha);
    manifest.tensors = static_cast<std::uint32_t>(pairs.size());
}

Result<LoraFile> read_lora(const fs::path& file) {
    TRY(const Gguf gguf, models::read_gguf(file));
    TRY_DO(check_kind(gguf));
    LoraFile lora;
    lora.architecture = gguf.text("general.architecture");
    lora.alpha = real_value(gguf, "adapter.lora.alpha");
    lora.data_offset = gguf.data_offset;
    if (!std::isfinite(lora.alpha) || lora.alpha < 0) {
        return fail(ErrorCode::corrupt, "adapter.lora.alpha is no sensible number");
    }
    TRY(auto pairs, pair_up(gguf));
    for (auto& [weight, pair] : pairs) {
        TRY_DO(check_pair(pair));
        lora.pairs.push_back(std::move(pair));
    }
    if (lora.pairs.empty()) {
        return fail(ErrorCode::corrupt, "the adapter changes nothing: it has no tensors");
    }
    return lora;
}

Result<void> check_fit(const LoraFile& lora, const Gguf& base) {
    const std::string architecture = base.text("general.architecture");
    if (lora.architecture != architecture) {
        return fail(Error(ErrorCode::conflict,
                          fmt::format("the adapter is for the architecture {} and the base is {}",
                                      lora.architecture, architecture))
                        .reason("adapter_mismatch")
                        .italian(fmt::format("l'adattatore è per l'architettura {} e la base è {}",
                                             lora.architecture, architecture)));
    }
    std::map<std::string_view, const GgufTensor*> weights;
    for (const GgufTensor& tensor : base.tensors)
        weights.emplace(tensor.name, &tensor);
    for (const LoraPair& pair : lora.pairs) {
        const auto found = weights.find(pair.weight);
        if (found == weights.end()) {
            return wrong_tensor(ErrorCode::conflict, pair.a.name,
                                fmt::format("the base has no weight {}", pair.weight),
                                fmt::format("la base non ha il peso {}", pair.weight));
        }
        const GgufTensor& weight = *found->second;
        if (pair.weight == "token_embd.weight" || weight.shape.size() != 2) {
            return wrong_tensor(ErrorCode::unsupported, pair.a.name,
                                "only linear layers can be adapted",
                                "si adattano solo gli strati lineari");
        }
        const bool in = pair.a.shape[0] == weight.shape[0];
        const bool out = pair.b.shape[1] == weight.shape[1];
        if (!in || !out) {
            const GgufTensor& factor = in ? pair.b : pair.a;
            const auto text = fmt::format("{} against {} {}", shape_text(factor), pair.weight,
                                          shape_text(weight));
            return wrong_tensor(ErrorCode::conflict, factor.name, "its shape is " + text,
                                "forma " + text);
        }
    }
    return {};
}

Result<void> check_numbers(const fs::path& file, const LoraFile& lora) {
    std::ifstream stream(file, std::ios::binary);
    for (const LoraPair& pair : lora.pairs) {
        TRY_DO(check_tensor(stream, lora.data_offset, pair.a));
        TRY_DO(check_tensor(stream, lora.data_offset, pair.b));
    }
    return {};
}

}  // namespace molly::adapters
