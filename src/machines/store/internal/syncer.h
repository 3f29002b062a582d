#pragma once
// One thread that forces the journal to the disk for everybody who waits: a group commit.
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/promise.h"
#include "store/internal/ledger.h"

namespace molly::store::internal {

class Syncer {
public:
    explicit Syncer(const Ledger& ledger);
    Syncer(const Syncer&) = delete;
    Syncer& operator=(const Syncer&) = delete;
    Syncer(Syncer&&) = delete;
    Syncer& operator=(Syncer&&) = delete;
    ~Syncer();

    /// Suspends until everything appended before the call is on the disk. Errors: unavailable.
    Task<Result<void>> sync();

private:
    using Waiter = std::shared_ptr<Promise<Result<void>>>;
    void run();

    const Ledger& ledger_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<Waiter> waiters_;
    bool stopping_ = false;
    std::thread thread_;
};

}  // namespace molly::store::internal
