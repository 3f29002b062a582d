#pragma once
// Reads what the configuration declares of specialists and of confidence. Pure.
#include "app/config.h"
#include "app/config_reader.h"

namespace molly::app {

/// Whether this target can be asked how sure it is.
void check_confidence(Reader& in, double confidence_min, const domain::TargetSpec& target);

/// Reads every `[[specialist]]` of `root` into its target, which has been read before.
void read_specialists(Reader& root, Config& config);

}  // namespace molly::app
