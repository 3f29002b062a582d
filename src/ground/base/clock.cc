#include "base/clock.h"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/coroutine.h"

namespace molly {
namespace {

class SystemClock final : public Clock {
public:
    MonoTime now() const noexcept override { return std::chrono::steady_clock::now(); }
    WallTime wall() const noexcept override { return std::chrono::system_clock::now(); }
    Task<void> sleep_until(MonoTime when) override {
        const auto executor = co_await boost::asio::this_coro::executor;
        boost::asio::steady_timer timer(executor, when);
        co_await timer.async_wait(boost::asio::use_awaitable);
    }
};

}  // namespace

Clock& system_clock() {
    static SystemClock clock;
    return clock;
}

}  // namespace molly
