#pragma once
// `molly train full`, and going on with its runs.
#include <filesystem>
#include <string>

#include "app/commands.h"

namespace molly::app {

void declare_train_full(Command& train);
/// Goes on with the run of a whole model that began on this base.
Result<void> resume_full_run(const General& general, const std::string& run,
                             const std::filesystem::path& base);

}  // namespace molly::app
