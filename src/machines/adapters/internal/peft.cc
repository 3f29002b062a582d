#include "adapters/internal/peft.h"

#include <array>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "adapters/internal/peft_names.h"
#include "adapters/internal/safetensors.h"
#include "base/json.h"

namespace molly::adapters {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view converter = "convert_lora_to_gguf.py of llama.cpp";

struct Config {
    double alpha = 0;
    double rank = 0;
    bool by_root = false;  // rsLoRA: alpha / sqrt(rank)
};

struct Factor {
    std::string name;  // in the GGUF file
    SafeTensor tensor;
    std::uint64_t heads = 0;  // rows are reordered by head; 0: as they are
};

std::unexpected<Error> unsupported(std::string_view what) {
    return fail(
        Error(ErrorCode::unsupported,
              fmt::format("this PEFT adapter uses {}; try {}", what, converter))
            .italian(fmt::format("questo adattatore PEFT usa {}; provare {}", what, converter)));
}

Result<Config> read_config(const fs::path& file) {
    std::ifstream stream(file, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    const auto value = parse_json(text, {.bytes_max = 1U << 20U, .depth_max = 16});
    if (!value || !value->is_object()) {
        return fail(
            Error(ErrorCode::corrupt, fmt::format("{} is missing or no JSON object", file.string()))
                .italian(fmt::format("{} manca o non è un oggetto JSON", file.string())));
    }
    const json::object& object = value->get_object();
    const auto set = [&](const char* key) {
        const json::value* item = object.if_contains(key);
        return item != nullptr && ((item->is_bool() && item->get_bool()) ||
                                   (item->is_object() && !item->get_object().empty()));
    };
    const auto number = [&](const char* key) {
        const json::value* item = object.if_contains(key);
        return item != nullptr && item->is_number() ? item->to_number<double>() : 0;
    };
    if (set("use_dora")) return unsupported("DoRA");
    if (set("alpha_pattern")) return unsupported("one alpha per module");
    Config config;
    config.rank = number("r");
    config.alpha = number("lora_alpha");
    config.by_root = set("use_rslora");
    if (config.by_root && set("rank_pattern")) return unsupported("rsLoRA with mixed ranks");
    if (config.rank < 1 || config.alpha <= 0) {
        return fail(ErrorCode::corrupt, fmt::format("{} has no r and lora_alpha", file.string()));
    }
    return config;
}

Result<std::vector<Factor>> find_factors(const fs::path& file, const models::Gguf& base) {
    const std::string architecture = base.text("general.architecture");
    if (!peft_knows(architecture))
        return unsupported(fmt::format("the architecture {}", architecture));
    TRY(const auto tensors, read_safetensors(file));
    std::vector<Factor> factors;
    for (const auto& [name, tensor] : tensors) {
        const auto ours = gguf_name(name);
        if (!ours) return unsupported(fmt::format("the tensor {}", name));
        if (tensor.shape.size() != 2) return unsupported(fmt::format("{} of another shape", name));
        Factor factor{.name = *ours, .tensor = tensor, .heads = heads_of(base, *ours)};
        if (factor.heads != 0 && tensor.shape[0] % (factor.heads * 2) != 0) {
            return fail(Error(ErrorCode::conflict,
                              fmt::format("tensor {}: {} rows do not divide into {} heads", name,
                                          tensor.shape[0], factor.heads))
                            .reason("adapter_mismatch"));
        }
        factors.push_back(std::move(factor));
    }
    return factors;
}

/// Writes GGUF version 3.
class Writer {
public:
    explicit Writer(const fs::path& file) : stream_(file, std::ios::binary | std::ios::trunc) {}

    template <class Number>
    void number(Number value) {
        std::array<char, sizeof(Number)> raw{};
        std::memcpy(raw.data(), &value, sizeof(Number));
        stream_.write(raw.data(), raw.size());
        at_ += raw.size();
    }
    void text(std::string_view value) {
        number<std::uint64_t>(value.size());
        bytes(value);
    }
    void value(std::string_view key, std::string_view text_value) {
        constexpr std::uint32_t string_tag = 8;
        text(key);
        number(string_tag);
        text(text_value);
    }
    void bytes(std::string_view value) {
        stream_.write(value.data(), static_cast<std::streamsize>(value.size()));
        at_ += value.size();
    }
    void pad() {
        while (at_ % alignment != 0)
            number<char>(0);
    }
    bool good() { return stream_.flush().good(); }

    static constexpr std::uint64_t alignment = 32;

private:
    std::ofstream stream_;
    std::uint64_t at_ = 0;
};

std::uint32_t type_of(const SafeTensor& tensor) {
    return tensor.type == "F32" ? 0 : tensor.type == "F16" ? 1 : 30;
}

/// Each head's rows: first half and second half interleaved, as llama.cpp's converter does.
std::string reorder(const std::string& rows, const Factor& factor) {
    const std::uint64_t out = factor.tensor.shape[0];
    const std::uint64_t row_bytes = factor.tensor.bytes / out;
    const std::uint64_t half = out / factor.heads / 2;
    std::string ordered;
    ordered.reserve(rows.size());
    for (std::uint64_t head = 0; head < factor.heads; ++head)
        for (std::uint64_t i = 0; i < half; ++i)
            for (std::uint64_t side = 0; side < 2; ++side)
                ordered.append(rows, (head * 2 * half + side * half + i) * row_bytes, row_bytes);
    return ordered;
}

Result<void> write_gguf(const fs::path& from, const fs::path& into, double alpha,
                        const std::string& architecture, const std::vector<Factor>& factors) {
    Writer writer(into);
    writer.bytes("GGUF");
    writer.number<std::uint32_t>(3);
    writer.number<std::uint64_t>(factors.size());
    writer.number<std::uint64_t>(4);
    writer.value("general.type", "adapter");
    writer.value("general.architecture", architecture);
    writer.value("adapter.type", "lora");
    writer.text("adapter.lora.alpha");
    writer.number<std::uint32_t>(6);
    writer.number(static_cast<float>(alpha));
    std::uint64_t offset = 0;
    for (const Factor& factor : factors) {
        writer.text(factor.name);
        writer.number<std::uint32_t>(2);
        writer.number(factor.tensor.shape[1]);
        writer.number(factor.tensor.shape[0]);
        writer.number(type_of(factor.tensor));
        writer.number(offset);
        offset +=
            (factor.tensor.bytes + Writer::alignment - 1) / Writer::alignment * Writer::alignment;
    }
    std::ifstream stream(from, std::ios::binary);
    for (const Factor& factor : factors) {
        writer.pad();
        std::string rows(factor.tensor.bytes, '\0');
        stream.seekg(static_cast<std::streamoff>(factor.tensor.begin));
        stream.read(rows.data(), static_cast<std::streamsize>(rows.size()));
        if (!stream) {
            return fail(ErrorCode::corrupt,
                        fmt::format("{} ends inside a tensor; fetch it again", from.string()));
        }
        writer.bytes(factor.heads != 0 ? reorder(rows, factor) : rows);
    }
    writer.pad();
    if (writer.good()) return {};
    return fail(
        Error(ErrorCode::exhausted,
              fmt::format("cannot write {}; free some space on the disk", into.string()))
            .italian(fmt::format("impossibile scrivere {}; liberare spazio", into.string())));
}

}  // namespace

Result<void> convert_peft(const fs::path& folder, const models::Gguf& base, const fs::path& into) {
    TRY(const Config config, read_config(folder / "adapter_config.json"));
    const fs::path weights = folder / "adapter_model.safetensors";
    TRY(const auto factors, find_factors(weights, base));
    // GGUF says alpha / rank only.
    const double alpha = config.by_root ? config.alpha * std::sqrt(config.rank) : config.alpha;
    return write_gguf(weights, into, alpha, base.text("general.architecture"), factors);
}

}  // namespace molly::adapters
