#include "train/internal/lanes.h"

#include "train/internal/matmul.h"

namespace molly::train {

Lanes::Lanes(std::size_t count) : count_(count == 0 ? 1 : count) {
    keep_matmul_to_this_thread();
    for (std::size_t lane = 1; lane < count_; ++lane)
        threads_.emplace_back([this, lane] { serve(lane); });
}

Lanes::~Lanes() {
    {
        const std::scoped_lock lock(mutex_);
        closing_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_)
        thread.join();
}

void Lanes::run(const std::function<void(std::size_t)>& work) {
    {
        const std::scoped_lock lock(mutex_);
        work_ = &work;
        busy_ = count_ - 1;
        ++round_;
    }
    changed_.notify_all();
    work(0);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return busy_ == 0; });
    work_ = nullptr;
}

void Lanes::split(std::size_t items,
                  const std::function<void(std::size_t, std::size_t, std::size_t)>& work) {
    run([&](std::size_t lane) { work(lane, items * lane / count_, items * (lane + 1) / count_); });
}

void Lanes::serve(std::size_t lane) {
    keep_matmul_to_this_thread();
    std::size_t done = 0;
    for (;;) {
        const std::function<void(std::size_t)>* work = nullptr;
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [&] { return closing_ || round_ != done; });
            if (closing_) return;
            done = round_;
            work = work_;
        }
        (*work)(lane);
        {
            const std::scoped_lock lock(mutex_);
            --busy_;
        }
        changed_.notify_all();
    }
}

}  // namespace molly::train
