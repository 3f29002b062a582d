#pragma once
// One beginning of a prompt as a sealed file: a head that says what it is, then its keys and values
// in pieces. Nothing of it can be read, changed, shortened or given another name without the data
// folder's key. Blocking; safe from any thread.
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "engine/prefix_store.h"
#include "seal/seal.h"

namespace molly::app {

/// What a file says of itself. Its name is the record's id.
struct PrefixHead {
    engine::PrefixRecord record;
    std::string model;       ///< for people
    std::string model_hash;  ///< SHA-256 of the model's file, hex
    WallTime made;           ///< in whole seconds
};

inline constexpr std::string_view prefix_extension = ".prefix";
std::filesystem::path prefix_path(const std::filesystem::path& folder, std::string_view id);

/// What the file of these bytes takes on the disk, about.
std::uint64_t prefix_file_bytes(const engine::PrefixRecord& record);

/// Writes it under another name first, so that a file of that name is whole. Errors: exhausted (the
/// disk is full), unavailable.
Result<void> write_prefix_file(const std::filesystem::path& folder, const PrefixHead& head,
                               std::string_view bytes, const seal::Vault& vault);

/// What the file holds, without its bytes; that it is as long as it should be is checked. Errors:
/// not_found, corrupt, unavailable.
Result<PrefixHead> read_prefix_head(const std::filesystem::path& file, const seal::Vault& vault);
/// The bytes, all of them checked. Errors: as read_prefix_head.
Result<std::string> read_prefix_bytes(const std::filesystem::path& file, const seal::Vault& vault);

}  // namespace molly::app
