#include "adapters/internal/safetensors.h"

#include <array>
#include <bit>
#include <fstream>
#include <optional>
#include <system_error>

#include <fmt/format.h>

#include "base/json.h"

namespace molly::adapters {
namespace {

constexpr std::uint64_t header_bytes_max = 16U << 20U;
constexpr std::uint64_t elements_max = 1ULL << 40U;

std::unexpected<Error> corrupt(std::string_view name, std::string_view what) {
    return fail(Error(ErrorCode::corrupt,
                      fmt::format("not a sound safetensors file: {}{}{}; fetch it again", name,
                                  name.empty() ? "" : ": ", what))
                    .italian("il file safetensors non è integro; scaricarlo di nuovo"));
}

std::optional<std::uint64_t> whole(const json::value& value) {
    if (!value.is_int64() || value.get_int64() < 0) return std::nullopt;
    return static_cast<std::uint64_t>(value.get_int64());
}

/// `room`: bytes behind the header.
Result<SafeTensor> read_entry(std::string_view name, const json::value& value,
                              std::uint64_t data_begin, std::uint64_t room) {
    const json::object* object = value.if_object();
    const json::value* type = object != nullptr ? object->if_contains("dtype") : nullptr;
    const json::value* shape = object != nullptr ? object->if_contains("shape") : nullptr;
    const json::value* place = object != nullptr ? object->if_contains("data_offsets") : nullptr;
    if (type == nullptr || !type->is_string() || shape == nullptr || !shape->is_array() ||
        place == nullptr || !place->is_array() || place->get_array().size() != 2)
        return corrupt(name, "an entry without type, shape and place");
    SafeTensor tensor;
    tensor.type = std::string_view(type->get_string());
    const bool wide = tensor.type == "F32";
    if (!wide && tensor.type != "F16" && tensor.type != "BF16") {
        return fail(ErrorCode::unsupported,
                    fmt::format("tensor {}: its numbers are {}; save them as F32, F16 or BF16",
                                name, tensor.type));
    }
    std::uint64_t elements = 1;
    for (const json::value& item : shape->get_array()) {
        const auto length = whole(item);
        if (!length || *length == 0 || *length > elements_max / elements)
            return corrupt(name, "an impossible shape");
        elements *= *length;
        tensor.shape.push_back(*length);
    }
    tensor.bytes = elements * (wide ? 4 : 2);
    const auto begin = whole(place->get_array()[0]);
    const auto end = whole(place->get_array()[1]);
    if (!begin || !end || *end < *begin || *end > room || *end - *begin != tensor.bytes)
        return corrupt(name, "a tensor that does not lie in the file");
    tensor.begin = data_begin + *begin;
    return tensor;
}

}  // namespace

Result<std::map<std::string, SafeTensor>> read_safetensors(const std::filesystem::path& file) {
    std::error_code error;
    const std::uint64_t bytes = std::filesystem::file_size(file, error);
    std::ifstream stream(file, std::ios::binary);
    if (error || !stream) {
        return fail(Error(ErrorCode::not_found, fmt::format("cannot read {}", file.string()))
                        .italian(fmt::format("impossibile leggere {}", file.string())));
    }
    std::array<char, 8> raw{};
    stream.read(raw.data(), raw.size());
    const auto length = std::bit_cast<std::uint64_t>(raw);
    if (!stream || length > header_bytes_max || length > bytes - raw.size())
        return corrupt({}, "an impossible header length");
    std::string header(length, '\0');
    stream.read(header.data(), static_cast<std::streamsize>(length));
    const auto value = parse_json(header, {.bytes_max = header_bytes_max, .depth_max = 4});
    if (!stream || !value || !value->is_object()) return corrupt({}, "a header that is no object");
    std::map<std::string, SafeTensor> tensors;
    const std::uint64_t data_begin = raw.size() + length;
    for (const auto& entry : value->get_object()) {
        if (entry.key() == "__metadata__") continue;
        TRY(auto tensor, read_entry(entry.key(), entry.value(), data_begin, bytes - data_begin));
        tensors.emplace(entry.key(), std::move(tensor));
    }
    return tensors;
}

}  // namespace molly::adapters
