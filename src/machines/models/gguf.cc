#include "models/gguf.h"

#include <array>
#include <bit>
#include <cstring>
#include <fstream>
#include <limits>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace molly::models {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF numbers are read as they lie");

constexpr std::uint64_t dimensions_max = 4;
constexpr std::uint64_t alignment_default = 32;
constexpr std::uint64_t alignment_max = 1U << 20U;

struct TensorType {
    std::uint32_t id;
    std::string_view name;
    std::uint64_t block;  // elements
    std::uint64_t bytes;  // of one block
};

// ggml's types in llama.cpp v0.4.0.
constexpr std::array tensor_types = {
    TensorType{0, "f32", 1, 4},         TensorType{1, "f16", 1, 2},
    TensorType{2, "q4_0", 32, 18},      TensorType{3, "q4_1", 32, 20},
    TensorType{6, "q5_0", 32, 22},      TensorType{7, "q5_1", 32, 24},
    TensorType{8, "q8_0", 32, 34},      TensorType{9, "q8_1", 32, 36},
    TensorType{10, "q2_K", 256, 84},    TensorType{11, "q3_K", 256, 110},
    TensorType{12, "q4_K", 256, 144},   TensorType{13, "q5_K", 256, 176},
    TensorType{14, "q6_K", 256, 210},   TensorType{15, "q8_K", 256, 292},
    TensorType{16, "iq2_xxs", 256, 66}, TensorType{17, "iq2_xs", 256, 74},
    TensorType{18, "iq3_xxs", 256, 98}, TensorType{19, "iq1_s", 256, 50},
    TensorType{20, "iq4_nl", 32, 18},   TensorType{21, "iq3_s", 256, 110},
    TensorType{22, "iq2_s", 256, 82},   TensorType{23, "iq4_xs", 256, 136},
    TensorType{24, "i8", 1, 1},         TensorType{25, "i16", 1, 2},
    TensorType{26, "i32", 1, 4},        TensorType{27, "i64", 1, 8},
    TensorType{28, "f64", 1, 8},        TensorType{29, "iq1_m", 256, 56},
    TensorType{30, "bf16", 1, 2},       TensorType{34, "tq1_0", 256, 54},
    TensorType{35, "tq2_0", 256, 66},   TensorType{39, "mxfp4", 32, 17},
    TensorType{40, "nvfp4", 64, 36},    TensorType{41, "q1_0", 128, 18},
    TensorType{42, "q2_0", 64, 18},
};

const TensorType* find_type(std::uint32_t id) {
    for (const auto& type : tensor_types) {
        if (type.id == id) return &type;
    }
    return nullptr;
}

/// Bytes of one value of a fixed width; 0 for texts and arrays.
std::uint64_t width_of(GgufType type) {
    switch (type) {
        case GgufType::u8:
        case GgufType::i8:
        case GgufType::boolean:
            return 1;
        case GgufType::u16:
        case GgufType::i16:
            return 2;
        case GgufType::u32:
        case GgufType::i32:
        case GgufType::f32:
            return 4;
        case GgufType::u64:
        case GgufType::i64:
        case GgufType::f64:
            return 8;
        case GgufType::string:
        case GgufType::array:
            return 0;
    }
    return 0;
}

class Reader {
public:
    Reader(std::istream& stream, std::uint64_t bytes, const GgufLimits& limits)
        : stream_(stream), bytes_(bytes), limits_(limits) {}

    std::uint64_t offset() const noexcept { return offset_; }
    std::uint64_t left() const noexcept { return bytes_ - offset_; }

    std::unexpected<Error> corrupt(std::string_view what) const {
        return fail(
            Error(ErrorCode::corrupt, fmt::format("not a sound GGUF file: {} at byte {}; fetch the "
                                                  "file again",
                                                  what, offset_))
                .italian(fmt::format("il file GGUF non è integro: errore al byte {}; scaricarlo di "
                                     "nuovo",
                                     offset_)));
    }
    std::unexpected<Error> over(std::string_view what, std::uint64_t count,
                                std::uint64_t max) const {
        return fail(ErrorCode::too_large, fmt::format("GGUF file with {} {} at byte {}; at most {}",
                                                      count, what, offset_, max));
    }

    template <class Number>
    Result<Number> number() {
        std::array<char, sizeof(Number)> raw{};
        TRY_DO(bytes(raw.data(), raw.size()));
        return std::bit_cast<Number>(raw);
    }

    Result<std::string> text(std::uint64_t bytes_max) {
        TRY(const auto length, number<std::uint64_t>());
        if (length > left()) return corrupt("a text that is longer than the file");
        if (length > bytes_max) return over("bytes in one text", length, bytes_max);
        kept_ += length;
        if (kept_ > limits_.strings_bytes_max) {
            return over("bytes of text", kept_, limits_.strings_bytes_max);
        }
        std::string value(length, '\0');
        TRY_DO(bytes(value.data(), length));
        return value;
    }

    Result<void> skip(std::uint64_t count) {
        if (count > left()) return corrupt("a value that is longer than the file");
        stream_.ignore(static_cast<std::streamsize>(count));
        if (static_cast<std::uint64_t>(stream_.gcount()) != count) return corrupt("an early end");
        offset_ += count;
        return {};
    }

private:
    Result<void> bytes(char* into, std::uint64_t count) {
        if (count > left()) return corrupt("an early end");
        stream_.read(into, static_cast<std::streamsize>(count));
        if (static_cast<std::uint64_t>(stream_.gcount()) != count) return corrupt("an early end");
        offset_ += count;
        return {};
    }

    std::istream& stream_;
    const std::uint64_t bytes_;
    const GgufLimits& limits_;
    std::uint64_t offset_ = 0;
    std::uint64_t kept_ = 0;
};

Result<GgufType> read_type(Reader& reader) {
    TRY(const auto tag, reader.number<std::uint32_t>());
    if (tag > std::to_underlying(GgufType::f64)) return reader.corrupt("an unknown value type");
    return static_cast<GgufType>(tag);
}

template <class Number, class Kept>
Result<GgufValue> read_number(Reader& reader) {
    TRY(const auto value, reader.number<Number>());
    return GgufValue(static_cast<Kept>(value));
}

Result<GgufValue> read_array(Reader& reader, const GgufLimits& limits) {
    TRY(const auto of, read_type(reader));
    TRY(const auto count, reader.number<std::uint64_t>());
    if (of == GgufType::array) return reader.corrupt("an array of arrays");
    const std::uint64_t item_min = of == GgufType::string ? 8 : width_of(of);
    if (count > reader.left() / item_min) return reader.corrupt("an array longer than the file");
    if (count > limits.array_items_max) {
        return reader.over("items in one array", count, limits.array_items_max);
    }
    if (of != GgufType::string) {
        TRY_DO(reader.skip(count * item_min));
        return GgufValue(GgufArray{of, count});
    }
    for (std::uint64_t item = 0; item < count; ++item) {
        TRY(const auto length, reader.number<std::uint64_t>());
        TRY_DO(reader.skip(length));
    }
    return GgufValue(GgufArray{of, count});
}

Result<GgufValue> read_boolean(Reader& reader) {
    TRY(const auto value, reader.number<std::uint8_t>());
    if (value > 1) return reader.corrupt("a truth value that is neither 0 nor 1");
    return GgufValue(value == 1);
}

Result<GgufValue> read_text(Reader& reader, const GgufLimits& limits) {
    TRY(auto value, reader.text(limits.string_bytes_max));
    return GgufValue(std::move(value));
}

Result<GgufValue> read_value(Reader& reader, const GgufLimits& limits) {
    TRY(const auto type, read_type(reader));
    switch (type) {
        case GgufType::u8:
            return read_number<std::uint8_t, std::uint64_t>(reader);
        case GgufType::u16:
            return read_number<std::uint16_t, std::uint64_t>(reader);
        case GgufType::u32:
            return read_number<std::uint32_t, std::uint64_t>(reader);
        case GgufType::u64:
            return read_number<std::uint64_t, std::uint64_t>(reader);
        case GgufType::i8:
            return read_number<std::int8_t, std::int64_t>(reader);
        case GgufType::i16:
            return read_number<std::int16_t, std::int64_t>(reader);
        case GgufType::i32:
            return read_number<std::int32_t, std::int64_t>(reader);
        case GgufType::i64:
            return read_number<std::int64_t, std::int64_t>(reader);
        case GgufType::f32:
            return read_number<float, double>(reader);
        case GgufType::f64:
            return read_number<double, double>(reader);
        case GgufType::boolean:
            return read_boolean(reader);
        case GgufType::string:
            return read_text(reader, limits);
        case GgufType::array:
            return read_array(reader, limits);
    }
    return reader.corrupt("an unknown value type");
}

/// Fills shape and bytes. Every product is checked before it is made.
Result<void> read_shape(Reader& reader, GgufTensor& tensor, std::uint64_t dimensions) {
    std::uint64_t elements = 1;
    for (std::uint64_t axis = 0; axis < dimensions; ++axis) {
        TRY(const auto length, reader.number<std::uint64_t>());
        if (length == 0 ||
            length >
                static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) / elements) {
            return reader.corrupt("a tensor with an impossible shape");
        }
        elements *= length;
        tensor.shape.push_back(length);
    }
    TRY(const auto id, reader.number<std::uint32_t>());
    const TensorType* type = find_type(id);
    if (type == nullptr) {
        return fail(ErrorCode::unsupported,
                    fmt::format("GGUF tensor type {} at byte {} is not known to this version; use "
                                "another quantization of the model",
                                id, reader.offset()));
    }
    if (tensor.shape[0] % type->block != 0) {
        return reader.corrupt("a tensor whose rows do not fill its blocks");
    }
    const std::uint64_t blocks = elements / type->block;
    if (blocks > std::numeric_limits<std::uint64_t>::max() / type->bytes) {
        return reader.corrupt("a tensor with an impossible size");
    }
    tensor.type = type->name;
    tensor.bytes = blocks * type->bytes;
    return {};
}

Result<GgufTensor> read_tensor(Reader& reader, const GgufLimits& limits) {
    GgufTensor tensor;
    TRY(tensor.name, reader.text(limits.name_bytes_max));
    TRY(const auto dimensions, reader.number<std::uint32_t>());
    if (dimensions == 0 || dimensions > dimensions_max) {
        return reader.corrupt("a tensor without 1 to 4 dimensions");
    }
    TRY_DO(read_shape(reader, tensor, dimensions));
    TRY(tensor.offset, reader.number<std::uint64_t>());
    return tensor;
}

Result<void> read_values(Reader& reader, Gguf& gguf, std::uint64_t count,
                         const GgufLimits& limits) {
    for (std::uint64_t i = 0; i < count; ++i) {
        TRY(auto key, reader.text(limits.name_bytes_max));
        if (key.empty()) return reader.corrupt("an empty key");
        const std::uint64_t begin = reader.offset();
        TRY(auto value, read_value(reader, limits));
        gguf.places.insert_or_assign(key, GgufPlace{begin, reader.offset()});
        if (!gguf.values.emplace(std::move(key), std::move(value)).second) {
            return reader.corrupt("a repeated key");
        }
    }
    return {};
}

Result<void> read_tensors(Reader& reader, Gguf& gguf, std::uint64_t count,
                          const GgufLimits& limits) {
    std::set<std::string, std::less<>> names;
    for (std::uint64_t i = 0; i < count; ++i) {
        TRY(auto tensor, read_tensor(reader, limits));
        if (!names.insert(tensor.name).second) return reader.corrupt("a repeated tensor name");
        gguf.tensors.push_back(std::move(tensor));
    }
    return {};
}

Result<std::uint64_t> alignment_of(const Reader& reader, const Gguf& gguf) {
    if (!gguf.values.contains("general.alignment")) return alignment_default;
    const std::uint64_t alignment = gguf.number("general.alignment");
    if (!std::has_single_bit(alignment) || alignment > alignment_max) {
        return reader.corrupt("an alignment that is no power of two");
    }
    return alignment;
}

/// Every tensor must lie inside the file, where the alignment allows it.
Result<void> check_places(const Reader& reader, const Gguf& gguf, std::uint64_t file_bytes,
                          std::uint64_t alignment) {
    if (gguf.tensors.empty()) return {};
    if (gguf.data_offset > file_bytes) return reader.corrupt("no room for the tensors");
    const std::uint64_t room = file_bytes - gguf.data_offset;
    for (const auto& tensor : gguf.tensors) {
        if (tensor.offset % alignment != 0) return reader.corrupt("a tensor that is not aligned");
        if (tensor.offset > room || tensor.bytes > room - tensor.offset) {
            return reader.corrupt("a tensor that ends after the file");
        }
    }
    return {};
}

}  // namespace

Result<Gguf> parse_gguf(std::istream& stream, std::uint64_t file_bytes, const GgufLimits& limits) {
    Reader reader(stream, file_bytes, limits);
    TRY(const auto magic, reader.number<std::uint32_t>());
    constexpr std::uint32_t gguf_magic = 0x46554747;  // "GGUF"
    if (magic != gguf_magic) return reader.corrupt("another kind of file");
    Gguf gguf;
    TRY(gguf.version, reader.number<std::uint32_t>());
    if (gguf.version != 2 && gguf.version != 3) {
        return fail(ErrorCode::unsupported,
                    fmt::format("GGUF version {} is not supported (2 and 3 are); convert the model "
                                "again",
                                gguf.version));
    }
    TRY(const auto tensors, reader.number<std::uint64_t>());
    TRY(const auto values, reader.number<std::uint64_t>());
    if (tensors > limits.tensors_max) return reader.over("tensors", tensors, limits.tensors_max);
    if (values > limits.values_max) return reader.over("values", values, limits.values_max);
    TRY_DO(read_values(reader, gguf, values, limits));
    TRY_DO(read_tensors(reader, gguf, tensors, limits));
    TRY(const auto alignment, alignment_of(reader, gguf));
    gguf.data_offset = (reader.offset() + alignment - 1) / alignment * alignment;
    TRY_DO(check_places(reader, gguf, file_bytes, alignment));
    return gguf;
}

Result<Gguf> read_gguf(const std::filesystem::path& file, const GgufLimits& limits) {
    std::error_code error;
    const std::uint64_t bytes = std::filesystem::file_size(file, error);
    if (error) {
        return fail(Error(ErrorCode::not_found,
                          fmt::format("cannot read {}: {}", file.string(), error.message()))
                        .italian(fmt::format("impossibile leggere {}", file.string())));
    }
    std::ifstream stream(file, std::ios::binary);
    if (!stream) {
        return fail(ErrorCode::unavailable,
                    fmt::format("cannot open {}; check its permissions", file.string()));
    }
    return parse_gguf(stream, bytes, limits);
}

std::string Gguf::text(std::string_view key) const {
    const auto found = values.find(key);
    if (found == values.end()) return {};
    const auto* value = std::get_if<std::string>(&found->second);
    return value != nullptr ? *value : std::string();
}

std::uint64_t Gguf::number(std::string_view key) const {
    const auto found = values.find(key);
    if (found == values.end()) return 0;
    if (const auto* value = std::get_if<std::uint64_t>(&found->second)) return *value;
    const auto* value = std::get_if<std::int64_t>(&found->second);
    return value != nullptr && *value > 0 ? static_cast<std::uint64_t>(*value) : 0;
}

std::uint64_t Gguf::parameters() const {
    std::uint64_t sum = 0;
    for (const auto& tensor : tensors) {
        std::uint64_t elements = 1;
        for (const std::uint64_t length : tensor.shape)
            elements *= length;
        sum += elements;
    }
    return sum;
}

std::string Gguf::quantization() const {
    std::map<std::string, std::uint64_t, std::less<>> bytes;
    for (const auto& tensor : tensors)
        bytes[tensor.type] += tensor.bytes;
    std::string most;
    for (const auto& [type, size] : bytes) {
        if (most.empty() || size > bytes[most]) most = type;
    }
    return most;
}

}  // namespace molly::models
