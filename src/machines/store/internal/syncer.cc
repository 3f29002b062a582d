#include "store/internal/syncer.h"

namespace molly::store::internal {

Syncer::Syncer(const Ledger& ledger) : ledger_(ledger), thread_([this] { run(); }) {}

Syncer::~Syncer() {
    {
        const std::scoped_lock lock(mutex_);
        stopping_ = true;
    }
    changed_.notify_one();
    thread_.join();
}

Task<Result<void>> Syncer::sync() {
    auto waiter = std::make_shared<Promise<Result<void>>>();
    {
        const std::scoped_lock lock(mutex_);
        waiters_.push_back(waiter);
    }
    changed_.notify_one();
    co_return co_await waiter->wait();
}

void Syncer::run() {
    std::vector<Waiter> waiters;
    for (;;) {
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [this] { return stopping_ || !waiters_.empty(); });
            if (waiters_.empty()) return;
            waiters.swap(waiters_);
        }
        const Result<void> synced = ledger_.sync();
        for (const Waiter& waiter : waiters)
            waiter->set(synced);
        waiters.clear();
    }
}

}  // namespace molly::store::internal
