#pragma once
// An engine that knows the hash of its model file, which the engine itself does not compute.
#include <memory>
#include <string>

#include "engine/engine.h"

namespace molly::app {

/// `engine`, described with `hash` (SHA-256 of its file, hex) and that of the file it was made
/// from, where there is one.
std::unique_ptr<engine::Engine> with_hash(std::unique_ptr<engine::Engine> engine, std::string hash,
                                          std::string made_from);

}  // namespace molly::app
