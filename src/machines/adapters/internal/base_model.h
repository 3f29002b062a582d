#pragma once
// The base of an adapter as this machine has it.
#include <filesystem>

#include "adapters/manifest.h"
#include "base/result.h"
#include "models/gguf.h"

namespace molly::adapters {

struct BaseModel {
    Base base;
    models::Gguf gguf;
};

/// The base that `wanted` means, or the one of `file` when that is given, and whether both agree.
/// Hashes a file that the catalogue does not know. Errors: not_found, conflict (another base or
/// another tokenizer, with both hashes), corrupt.
Result<BaseModel> find_base(const std::filesystem::path& data, const std::filesystem::path& file,
                            const Base& wanted);

}  // namespace molly::adapters
