#pragma once
// The model that comes with Molly, and the specialists that come with it.
#include <filesystem>
#include <optional>
#include <string_view>

#include "adapters/registry.h"
#include "base/result.h"

namespace molly::app {

/// The built-in model of an installation or of a source tree, by preference.
std::optional<std::filesystem::path> built_in_model();

/// Offers the specialists beside the model to a registry, once each. What is refused is logged;
/// that is no reason not to start. Errors: unavailable.
Result<void> offer_specialists(adapters::Registry& registry, const std::filesystem::path& data,
                               const std::filesystem::path& model, std::string_view model_hash);

}  // namespace molly::app
