#pragma once
// Whose signature a manifest bears.
#include <string_view>

#include "adapters/manifest.h"
#include "base/result.h"

namespace molly::adapters {

/// Errors: corrupt (not what was signed), denied (signed by another key than `trusted`, base64).
Result<void> check_signature(const Manifest& manifest, std::string_view trusted);

}  // namespace molly::adapters
