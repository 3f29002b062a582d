#pragma once
// Files that are there whole or not at all: written beside, flushed to the disk, then renamed.
#include <filesystem>
#include <functional>
#include <string_view>

#include "base/result.h"

namespace molly::train {

/// Calls `write` with a temporary path in the same folder; when it returns true, the file is
/// flushed and takes the place of `file`. Errors: unavailable.
Result<void> write_whole(const std::filesystem::path& file,
                         const std::function<bool(const std::filesystem::path&)>& write);
/// The same for text at hand.
Result<void> write_whole(const std::filesystem::path& file, std::string_view text);

}  // namespace molly::train
