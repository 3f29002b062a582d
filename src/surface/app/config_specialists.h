#pragma once
// Reads what the configuration declares of specialists and of confidence. Pure.
#include "app/config.h"
#include "app/config_reader.h"

namespace molly::app {

/// Reads `confidence_min` and how confidence is measured.
void read_confidence(Reader& in, double& confidence_min, domain::ConfidenceMeasure& measure);

/// Whether answers of this target can be measured so.
void check_confidence(Reader& in, double confidence_min, const domain::ConfidenceMeasure& measure,
                      const domain::TargetSpec& target);

/// Whether every verifier that was named is there, once all targets have been read.
void check_verifiers(Reader& root, const Config& config);

/// Reads every `[[specialist]]` of `root` into its target, which has been read before.
void read_specialists(Reader& root, Config& config);

}  // namespace molly::app
