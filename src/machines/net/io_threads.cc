#include <algorithm>
#include <csignal>
#include <future>
#include <utility>

#include "base/assert.h"
#include "base/coroutine.h"
#include "net/internal/contexts.h"
#include "net/server.h"

namespace molly::net {
namespace {

constexpr std::uint32_t threads_by_default_max = 4;

/// Signals belong to the main thread: an IO thread that caught one would run its handler.
class SignalsBlocked {
public:
    SignalsBlocked() {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    SignalsBlocked(const SignalsBlocked&) = delete;
    SignalsBlocked& operator=(const SignalsBlocked&) = delete;
    SignalsBlocked(SignalsBlocked&&) = delete;
    SignalsBlocked& operator=(SignalsBlocked&&) = delete;
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

private:
    sigset_t before_{};
};

Task<void> run_and_tell(const std::function<Task<void>()>& task, std::promise<void>& ended) {
    co_await task();
    ended.set_value();
}

}  // namespace

IoThreads::Contexts::Contexts(std::size_t count) {
    homes_.reserve(count);
    const SignalsBlocked blocked;
    for (std::size_t i = 0; i < count; ++i) {
        auto home = std::make_unique<Home>();
        home->thread = std::thread([&io = home->io] { io.run(); });
        homes_.push_back(std::move(home));
    }
}

IoThreads::Contexts::~Contexts() {
    for (auto& home : homes_)
        home->io.stop();
    for (auto& home : homes_)
        home->thread.join();
}

bool IoThreads::Contexts::here() const noexcept {
    return std::any_of(homes_.begin(), homes_.end(), [](const auto& home) {
        return home->thread.get_id() == std::this_thread::get_id();
    });
}

IoThreads::IoThreads(std::uint32_t count) {
    if (count == 0)
        count = std::clamp(std::thread::hardware_concurrency(), 1U, threads_by_default_max);
    contexts_ = std::make_unique<Contexts>(count);
}

IoThreads::~IoThreads() = default;

void IoThreads::start(std::function<Task<void>()> task) {
    spawn(contexts_->at(contexts_->next()).get_executor(), std::move(task));
}

void IoThreads::run(std::function<Task<void>()> task) {
    MOLLY_ASSERT(!contexts_->here());
    std::promise<void> ended;
    start([&task, &ended] { return run_and_tell(task, ended); });
    ended.get_future().wait();
}

}  // namespace molly::net
