#pragma once
// `molly adapters sizes`.
#include "app/commands.h"

namespace molly::app {

void declare_adapter_sizes(Command& adapters);

}  // namespace molly::app
