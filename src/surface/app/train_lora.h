#pragma once
// `molly train lora` and `molly train dpo`, and going on with their runs.
#include <filesystem>
#include <string>

#include "app/commands.h"

namespace molly::app {

void declare_train_lora(Command& train);
/// Goes on with the run of an adapter on this base.
Result<void> resume_lora_run(const General& general, const std::string& run,
                             const std::filesystem::path& base);

}  // namespace molly::app
