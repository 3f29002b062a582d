#pragma once
// From an adapter of the registry to a PEFT folder, for the tools that read those. Blocking.
#include <filesystem>
#include <string>
#include <string_view>

#include "adapters/registry.h"
#include "base/result.h"
#include "models/gguf.h"

namespace molly::adapters {

/// Writes adapter_config.json and adapter_model.safetensors from a GGUF LoRA file made for `base`;
/// names and row order become the checkpoint's, numbers keep their type. `base_name` stands in the
/// configuration. Errors: those of reading the file; unsupported (another architecture), conflict
/// (rows that do not divide into heads), exhausted.
Result<void> write_peft(const std::filesystem::path& adapter, const models::Gguf& base,
                        const std::string& base_name, const std::filesystem::path& folder);

/// The same for a version of the registry, into `<name>-<version>` inside `folder`, which it gives.
/// `base`: the GGUF file, or empty for the catalogue's. Errors: also not_found, conflict (another
/// base).
Result<std::filesystem::path> export_peft(const Registry& registry,
                                          const std::filesystem::path& data, std::string_view id,
                                          const std::filesystem::path& base,
                                          const std::filesystem::path& folder);

}  // namespace molly::adapters
