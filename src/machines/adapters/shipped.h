#pragma once
// The adapters that come with a model: signed files in a folder, each offered to a registry once.
#include <filesystem>
#include <string_view>
#include <vector>

#include "adapters/registry.h"
#include "base/result.h"

namespace molly::adapters {

struct Shipped {
    std::vector<Manifest> taken;
    std::vector<Error> refused;
};

/// Takes every `*.json` of `folder` with its `*.gguf` beside it into the registry of `data`, when
/// it is for the base of this hash (the file `base`), signed by `public_key` (base64), and was not
/// offered before: one that its owner removed does not come back, and what serves is not replaced
/// by what was there already. A folder that does not exist holds none. Errors: unavailable.
Result<Shipped> take_in_shipped(Registry& registry, const std::filesystem::path& data,
                                const std::filesystem::path& folder,
                                const std::filesystem::path& base, std::string_view base_hash,
                                std::string_view public_key);

}  // namespace molly::adapters
