#pragma once
// Several coroutines at once, on the caller's executor.
#include <functional>
#include <vector>

#include "base/task.h"

namespace molly {

/// Starts all of them and suspends until every one has ended.
Task<void> gather(std::vector<std::function<Task<void>()>> tasks);

}  // namespace molly
