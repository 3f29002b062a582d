#pragma once
// Reads the metadata and the tensor table of a GGUF file (versions 2 and 3), nothing else of it.
// Strict and bounded: whatever a file claims is checked against the bytes that are there. Pure, but
// for read_gguf's file; safe from any thread.
#include <cstdint>
#include <filesystem>
#include <istream>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace molly::models {

/// The type tags of metadata values, as the file has them.
enum class GgufType : std::uint32_t {
    u8,
    i8,
    u16,
    i16,
    u32,
    i32,
    f32,
    boolean,
    string,
    array,
    u64,
    i64,
    f64
};

/// An array is only counted: vocabularies are large and nobody here reads them.
struct GgufArray {
    GgufType of = GgufType::u8;
    std::uint64_t count = 0;

    bool operator==(const GgufArray&) const = default;
};

using GgufValue = std::variant<std::uint64_t, std::int64_t, double, bool, std::string, GgufArray>;

struct GgufTensor {
    std::string name;
    std::string type;                  ///< ggml's name, such as `q4_K`
    std::vector<std::uint64_t> shape;  ///< innermost dimension first, 1 to 4 of them
    std::uint64_t offset = 0;          ///< bytes from data_offset
    std::uint64_t bytes = 0;
};

/// The key of a file that `molly models optimize` wrote: SHA-256, hex, of the one it was made from.
/// Adapters of that one fit.
inline constexpr std::string_view made_from_key = "molly.made_from";

/// Where something stands in the file, in bytes.
struct GgufPlace {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
};

struct Gguf {
    std::uint32_t version = 0;
    std::map<std::string, GgufValue, std::less<>> values;
    std::map<std::string, GgufPlace, std::less<>> places;  ///< of the values, with their type tags
    std::vector<GgufTensor> tensors;
    std::uint64_t data_offset = 0;  ///< bytes from the start of the file

    /// The text under `key`, or empty.
    std::string text(std::string_view key) const;
    /// The unsigned or non-negative signed number under `key`, or 0.
    std::uint64_t number(std::string_view key) const;
    /// Elements of all tensors.
    std::uint64_t parameters() const;
    /// The tensor type that holds most bytes, such as `q4_0`; empty without tensors.
    std::string quantization() const;
};

struct GgufLimits {
    std::uint64_t values_max = 65'536;
    std::uint64_t tensors_max = 262'144;
    std::uint64_t name_bytes_max = 65'535;           ///< of a key or a tensor's name
    std::uint64_t string_bytes_max = 16ULL << 20U;   ///< of one text value
    std::uint64_t strings_bytes_max = 64ULL << 20U;  ///< of all text values and names that are kept
    std::uint64_t array_items_max = 16ULL << 20U;    ///< of one array
};

/// Reads from the start of `stream`, which holds `file_bytes` bytes. Errors: corrupt (with the
/// offset and what is wrong), unsupported (a version or tensor type that is not known), too_large
/// (over a limit).
Result<Gguf> parse_gguf(std::istream& stream, std::uint64_t file_bytes,
                        const GgufLimits& limits = {});

/// The same for a file. Errors: also not_found, unavailable.
Result<Gguf> read_gguf(const std::filesystem::path& file, const GgufLimits& limits = {});

/// SHA-256, hex, of every `tokenizer.ggml.` key and its value as the file has them: equal for files
/// that split text alike. Empty when the file has none. Errors: corrupt, unavailable.
Result<std::string> tokenizer_hash(const std::filesystem::path& file, const Gguf& gguf);

}  // namespace molly::models
