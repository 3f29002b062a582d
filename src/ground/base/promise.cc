#include "base/promise.h"

#include <boost/asio/executor_work_guard.hpp>

namespace molly::internal {

Task<void> Wakeup::wait() {
    const Executor executor = co_await boost::asio::this_coro::executor;
    auto initiate = [this, executor](auto handler) {
        auto shared = std::make_shared<decltype(handler)>(std::move(handler));
        auto resume = [executor, shared] {
            // Else its last handler could end the executor's context while this thread is in it.
            const auto work = boost::asio::make_work_guard(executor);
            boost::asio::post(executor, [shared] { std::move (*shared)(); });
        };
        bool now = false;
        {
            const std::scoped_lock lock(mutex_);
            if (woken_) {
                woken_ = false;
                now = true;
            } else {
                resume_ = resume;
            }
        }
        if (now) resume();
    };
    co_await boost::asio::async_initiate<const boost::asio::use_awaitable_t<>&, void()>(
        std::move(initiate), boost::asio::use_awaitable);
}

void Wakeup::wake() {
    std::function<void()> resume;
    {
        const std::scoped_lock lock(mutex_);
        if (!resume_) {
            woken_ = true;
            return;
        }
        resume.swap(resume_);
    }
    resume();
}

}  // namespace molly::internal
