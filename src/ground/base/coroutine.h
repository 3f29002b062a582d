#pragma once
// What a coroutine body needs: the awaitable, the current executor, and `spawn`, the only co_spawn
// of the project.
#include <functional>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/this_coro.hpp>

#include "base/result.h"
#include "base/task.h"

namespace molly {

using Executor = boost::asio::any_io_executor;

/// Starts `task` on `executor`. The callable is kept alive until the coroutine ends, so it may
/// capture. An exception that leaves the coroutine stops the process: errors travel as Result.
void spawn(const Executor& executor, std::function<Task<void>()> task);

}  // namespace molly
