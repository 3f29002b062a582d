#pragma once
// Reads the table of a safetensors file. Strict and bounded.
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace molly::adapters {

struct SafeTensor {
    std::string type;                  ///< `F32`, `F16`, `BF16`
    std::vector<std::uint64_t> shape;  ///< outermost dimension first
    std::uint64_t begin = 0;           ///< bytes from the start of the file
    std::uint64_t bytes = 0;
};

/// Errors: not_found, corrupt (shapes and places are checked against the file), unsupported
/// (types).
Result<std::map<std::string, SafeTensor>> read_safetensors(const std::filesystem::path& file);

}  // namespace molly::adapters
