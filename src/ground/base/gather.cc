#include "base/gather.h"

#include <memory>
#include <utility>

#include "base/channel.h"
#include "base/coroutine.h"

namespace molly {

Task<void> gather(std::vector<std::function<Task<void>()>> tasks) {
    const Executor executor = co_await boost::asio::this_coro::executor;
    const auto ended = std::make_shared<Channel<bool>>(tasks.size());
    for (auto& task : tasks) {
        spawn(executor, [task = std::move(task), ended]() -> Task<void> {
            co_await task();
            ended->try_send(true);
        });
    }
    for (std::size_t i = 0; i < tasks.size(); ++i)
        co_await ended->receive();
}

}  // namespace molly
