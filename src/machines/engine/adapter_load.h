#pragma once
// How long an adapter takes from its file to the engine's own order.
#include <filesystem>

#include "base/result.h"

namespace molly::engine {

/// Milliseconds, the median of several loads of a GGUF LoRA file that the system has at hand. The
/// base's weights are not read. Errors: not_found, corrupt, conflict, unsupported, exhausted.
Result<double> time_adapter_load(const std::filesystem::path& base,
                                 const std::filesystem::path& adapter);

}  // namespace molly::engine
