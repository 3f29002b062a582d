#include "app/built_in.h"

#include <string>
#include <system_error>

#include "adapters/shipped.h"
#include "app/places.h"
#include "base/log.h"

namespace molly::app {
namespace {

// Who signs what is in models/specialists.
constexpr std::string_view release_key = "WR53hZRUFNy/GAXdomBoIHAKdM7/3GswGFMBwnE1vNc=";

}  // namespace

std::optional<std::filesystem::path> built_in_model() {
    const std::filesystem::path here = executable().parent_path();
    for (const std::filesystem::path& folder :
         {here / "models", here / "../share/molly/models",
          std::filesystem::path(MOLLY_SOURCE_DIR) / "models"}) {
        std::error_code fault;
        for (const auto& entry : std::filesystem::directory_iterator(folder, fault)) {
            const std::string name = entry.path().filename().string();
            if (name.starts_with("molly-nano") && name.ends_with(".gguf")) return entry.path();
        }
    }
    return std::nullopt;
}

Result<void> offer_specialists(adapters::Registry& registry, const std::filesystem::path& data,
                               const std::filesystem::path& model, std::string_view model_hash) {
    TRY(const adapters::Shipped shipped,
        adapters::take_in_shipped(registry, data, model.parent_path() / "specialists", model,
                                  model_hash, release_key));
    for (const adapters::Manifest& taken : shipped.taken)
        log_event(LogLevel::info, "specialist_taken_in", {{"adapter", taken.id()}});
    for (const Error& refused : shipped.refused)
        log_event(LogLevel::warning, "specialist_refused", {{"error", refused.message()}});
    return {};
}

}  // namespace molly::app
