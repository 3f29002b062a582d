#pragma once
// `molly train lora` and `molly train dpo`, and going on with their runs.
#include <string>

#include "app/commands.h"

namespace molly::app {

void declare_train_lora(Command& train);
/// Goes on with the run of an adapter; false: the folder holds a run of another kind.
Result<bool> resume_lora_run(const General& general, const std::string& run);

}  // namespace molly::app
