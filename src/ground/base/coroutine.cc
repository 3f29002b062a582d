#include "base/coroutine.h"

#include <exception>

#include <boost/asio/co_spawn.hpp>

namespace molly {
namespace {

Task<void> run(std::function<Task<void>()> task) {
    co_await task();
}

}  // namespace

void spawn(const Executor& executor, std::function<Task<void>()> task) {
    boost::asio::co_spawn(executor, run(std::move(task)), [](const std::exception_ptr& error) {
        if (error) std::rethrow_exception(error);
    });
}

}  // namespace molly
