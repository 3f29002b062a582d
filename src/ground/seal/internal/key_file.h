#pragma once
// One secret of 32 bytes in a file that only its owner may read.
#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"

namespace molly::seal::internal {

inline constexpr std::size_t key_bytes = 32;

/// The key in the file, which is made of fresh random bytes when it is missing. `kind` is the first
/// word of the file, so that one kind of key is never taken for another. The caller wipes the text.
/// Errors: denied (readable by others: names the chmod), corrupt, unavailable.
Result<std::string> load_or_create_key(const std::filesystem::path& path, std::string_view kind);

/// As replace_key_file.
Result<void> replace(const std::filesystem::path& next, const std::filesystem::path& path);

/// Prepares libsodium once.
void prepare_sodium();

/// Overwrites a secret before its memory goes back.
void wipe(std::string& secret) noexcept;

}  // namespace molly::seal::internal
