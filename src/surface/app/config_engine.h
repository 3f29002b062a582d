#pragma once
// Reads what the configuration says of the model in this process. Pure.
#include "app/config.h"
#include "app/config_reader.h"

namespace molly::app {

void read_engine(Reader in, LocalEngine& engine);

}  // namespace molly::app
