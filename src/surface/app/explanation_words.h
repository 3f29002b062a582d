#pragma once
// Tokens of traces as words for people. Pure.
#include <string>
#include <string_view>

#include "app/terminal.h"

namespace molly::app {

/// `social_science` as `social science` or `scienze sociali`: a task, a domain, a source of
/// confidence, or what an attempt failed of. What is none of them stays as it is.
std::string in_words(const Terminal& terminal, std::string_view token);

}  // namespace molly::app
